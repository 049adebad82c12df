"""Messages that wait for their way: in a queue per lane, counted and timed together."""

from __future__ import annotations

import heapq
from typing import Callable, Collection, Optional

from .error_table import Expired
from .errors import ShardbusError
from .lane import Lane
from .session import GRACE, Call


class _Item:
    __slots__ = ("call", "lane")

    def __init__(self, call: Call, lane: Lane):
        self.call = call
        self.lane: Optional[Lane] = lane  # None: it does not wait any more


class Held:
    def __init__(self) -> None:
        self._count = 0
        self._deadlines: list = []  # heap of (time, number, item)
        self._number = 0

    def __len__(self) -> int:
        return self._count

    def append(self, lane: Lane, call: Call) -> None:
        lane.held.append(_Item(call, lane))
        self._count += 1

    def put_back(self, lane: Lane, call: Call) -> None:
        """Puts a call that was not sent before those that came after it."""
        item = _Item(call, lane)
        lane.held.appendleft(item)
        self._count += 1
        self._watch(item)

    def pop(self, lane: Lane) -> Call:
        item = lane.held.popleft()
        item.lane = None
        self._count -= 1
        return item.call

    def move(self, lane: Lane, lane_of: Callable[[Call], Lane]) -> None:
        """Puts what a lane holds, in order, into the lanes that `lane_of` gives."""
        items = list(lane.held)
        lane.held.clear()
        for item in items:
            item.lane = lane_of(item.call)
            item.lane.held.append(item)

    def watch(self, lane: Lane) -> None:
        """Minds the deadline of what was appended last. Most calls never need that."""
        self._watch(lane.held[-1])

    def _watch(self, item: _Item) -> None:
        if item.call.deadline is not None:
            self._number += 1
            heapq.heappush(self._deadlines, (item.call.deadline, self._number, item))

    def next_deadline(self) -> Optional[float]:
        return self._deadlines[0][0] + GRACE if self._deadlines else None

    def expire(self, now: float, why: Optional[ShardbusError]) -> None:
        while self._deadlines and self._deadlines[0][0] + GRACE <= now:
            item = heapq.heappop(self._deadlines)[2]
            if item.lane is not None:
                item.lane.held.remove(item)
                self._end(item, why or Expired())

    def end_all(self, lanes: Collection[Lane], error: ShardbusError) -> int:
        """Ends every ask; gives how many tells nobody can be told about."""
        items = [item for lane in lanes for item in lane.held]
        for lane in lanes:
            lane.held.clear()
        for item in items:
            self._end(item, error)
        return sum(item.call.done is None for item in items)

    def _end(self, item: _Item, error: ShardbusError) -> None:
        item.lane = None
        self._count -= 1
        if item.call.done is not None:
            item.call.done(None, error)
