"""The way of a client's messages to one shard, and when it may change. Pure: no session, no clock.

Invariant: the messages of this client reach the shard in the order sent, across every change of
owner. The means is a fence (PROTOCOL.md section 9): on a change what is new is held, a fence goes
along the way that the last message took, and what is held follows the new way once the fence has
come out at the other end.
"""

from __future__ import annotations

import collections
import enum
from typing import TYPE_CHECKING, Optional

from .routing import Entry, FenceAnswer, Table

if TYPE_CHECKING:
    from .ways import Way


class Step(enum.Enum):
    SEND = 1  # along `way`
    FENCE = 2  # along `way`; until its answer nothing is sent
    HOLD = 3


class Fence:
    __slots__ = ("number", "entry", "due", "behind")

    def __init__(self, number: int, entry: Entry):
        self.number = number
        self.entry = entry
        self.due = 0.0  # when it is sent again
        self.behind = 0  # how much the session has to send before it


class Lane:
    __slots__ = ("type", "number", "entry", "way", "direct", "fence", "held")

    def __init__(self, type_name: str, number: Optional[int], entry: Entry):
        self.type = type_name
        self.number = number  # None: the shards of the type are not known
        self.entry = entry
        # Along it something was sent that may still be under way; None: nothing is.
        self.way: Optional[Way] = None
        # The way was begun as that to the owner. Where a node only forwards, messages carry no
        # generation, so that all of them take the node's own route, one behind the other.
        self.direct = False
        self.fence: Optional[Fence] = None
        self.held: collections.deque = collections.deque()

    @property
    def generation(self) -> Optional[tuple]:
        """Gives what the next message is stamped with."""
        return self.entry.generation if self.direct else None

    def step(self, wanted: Optional[Way]) -> Step:
        """Says what to do now, if `wanted` is the way that messages should take."""
        if self.fence is not None:
            news = self.entry.owner is not None and self.entry != self.fence.entry
            return Step.FENCE if news else Step.HOLD
        if self.way is not None and wanted is not self.way:
            return Step.FENCE
        if wanted is None or not wanted.is_open:
            return Step.HOLD
        if self.way is None:
            self.way, self.direct = wanted, wanted.key == self.entry.owner
        return Step.SEND

    def learn(self, entry: Entry, table: Optional[Table] = None) -> bool:
        """Takes what a table or MOVED says; whether it was new."""
        new = (self.entry.is_older(entry.generation) if table is None
               else self.entry.gives_way(entry, table))
        if new:
            self.entry = entry
        return new

    def fence_ok(self, answer: FenceAnswer, there: Optional[Way]) -> bool:
        """The fence came out; `there` is the open way to the node that answered, if any."""
        if self.fence is None or self.fence.number != answer.id:
            return False
        overtaken = answer.generation is None or (
            self.entry.generation is not None and answer.generation < self.entry.generation)
        if not overtaken:
            self.learn(Entry(answer.node, answer.generation))
            self.clear()
            return True
        # It came out at a node that our knowledge has overtaken: what was sent before is there.
        if there is not None and there is not self.way:
            self.way, self.direct, self.fence = there, True, None
            return True
        if self.entry.owner is None:
            self.fence = None  # there is nobody to go to: on along the old way
            return True
        return False  # asked again when it is overdue

    def path_lost(self, answer: FenceAnswer) -> bool:
        return self.fence is not None and self.fence.number == answer.id

    def clear(self) -> None:
        """Nothing of ours is under way any more."""
        self.way = self.fence = None
        self.direct = False
