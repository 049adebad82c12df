"""A client that sends each message to the node that owns its shard, in place of one Session.

Pure, and driven like a Session (link.py). What sessions tell is noted at once; what follows from it
is done in `tick`. Rules: PROTOCOL.md sections 9 and 10.2.
"""

from __future__ import annotations

import collections
import functools
import logging
from typing import Optional

from . import hashing, routing, wire
from .error_table import Overloaded, Stopped, TooLarge, UnknownOutcome
from .errors import ShardbusError
from .held import Held
from .lane import Fence, Lane, Step
from .routing import Entry
from .session import Call, Settings
from .ways import Way, WayEvents, Ways
from .wire import Kind

LOG = logging.getLogger("shardbus")

FENCE_INTERVAL = 1.0
# How long the first node may take to send its table; without one it gets everything.
TABLE_PATIENCE = 1.0

_shard_of = functools.lru_cache(maxsize=4096)(hashing.shard_of)


class Owners(WayEvents):
    def __init__(self, settings: Settings):
        self.settings = settings._replace(table=True)
        self.counters: collections.Counter = collections.Counter()
        # What waits is counted here for all nodes together.
        self._ways = Ways(self.settings._replace(max_waiting=1 << 30), self)
        self._stopped = False
        self._version: Optional[tuple] = None  # of the table; None: there is none
        self._nodes: set = set()  # that the table lists
        self._table_due: Optional[float] = None  # when we stop waiting for the first one
        self._patient = True  # we did not stop yet
        self._types: dict = {}  # name -> the newest Entry of each shard in any table
        self._lanes: dict = {}  # (type, shard number) -> Lane
        self._held = Held()
        # Lanes with an open fence, and lanes about which there is news: sets that keep their order.
        self._open_fences: dict = {}
        self._changed: dict = {}
        self._fence_numbers = 0

    # --- what a Session has, too ---

    @property
    def state(self) -> str:
        if self._stopped:
            return "stopped"
        return "open" if self._home() is not None else "greeting"

    @property
    def sessions(self) -> tuple:
        return self._ways.sessions

    @property
    def rejection(self) -> Optional[ShardbusError]:
        return self._ways.rejection

    @property
    def waiting(self) -> int:
        return len(self._held) + sum(session.waiting for session in self.sessions)

    def call(self, call: Call, now: float) -> None:
        """Sends a tell or an ask as soon as its way is open, in the order of calls.

        Raises Stopped, Overloaded or TooLarge; then nothing was sent, and `done` is not called.
        """
        if self._stopped:
            raise Stopped()
        if self.waiting >= self.settings.max_waiting:
            raise Overloaded(f"{self.waiting} messages wait to be sent already")
        if len(call.payload) > wire.PAYLOAD_BYTES:
            raise TooLarge(f"payload of {len(call.payload)} bytes, limit {wire.PAYLOAD_BYTES}")
        lane = self._lane_of(call)
        self._held.append(lane, call)
        self._settle(lane, now)
        if lane.held:
            self._held.watch(lane)

    def tick(self, now: float) -> None:
        for session in self.sessions:
            session.tick(now)
        self._watch_table(now)
        self._held.expire(now, self.rejection)
        changed, self._changed = self._changed, {}
        for lane in changed:
            self._settle(lane, now)
        for lane in self._open_fences:
            if lane.fence.due <= now:
                self._send_fence(lane, now)

    def next_deadline(self) -> Optional[float]:
        times = [session.next_deadline() for session in self.sessions]
        times += [self._held.next_deadline(), self._table_due]
        times += [lane.fence.due for lane in self._open_fences]
        return min((time for time in times if time is not None), default=None)

    def stop(self) -> None:
        """Says goodbye to every node; every ask that is still open ends."""
        self._stopped = True
        for session in self.sessions:
            session.stop()
        tells = self._held.end_all(self._lanes.values(), Stopped())
        if tells:
            self.counters["tells_refused"] += tells
            LOG.warning("stopped before %s tells could be sent", tells)

    # --- lanes ---

    def _lane_of(self, call: Call) -> Lane:
        entries = self._types.get(call.type)
        number = None if entries is None else _shard_of(call.id, len(entries))
        lane = self._lanes.get((call.type, number))
        if lane is None:
            lane = Lane(call.type, number, Entry() if entries is None else entries[number])
            before = self._lanes.get((call.type, None))
            if before is not None:  # messages went somewhere before the shards were known
                lane.way = before.way
            self._lanes[call.type, number] = lane
        return lane

    def _home(self) -> Optional[Way]:
        return None if self._version is None and self._patient else self._ways.home

    def _wanted(self, lane: Lane, now: float) -> Optional[Way]:
        """Gives the owner's way; without one the way of before, for it is in order; else home's."""
        if lane.entry.owner is not None:
            way = self._ways.to(lane.entry.owner, now)
            if way is not None:
                return way
        return lane.way or self._home()

    def _settle(self, lane: Lane, now: float) -> None:
        step = lane.step(self._wanted(lane, now))
        if step is Step.FENCE:
            self._fence_numbers += 1
            lane.fence = Fence(self._fence_numbers, lane.entry)
            self._send_fence(lane, now)
        elif step is Step.SEND:
            while lane.held:
                self._hand_over(lane, self._held.pop(lane), now)
        if lane.fence is None:
            self._open_fences.pop(lane, None)
        else:
            self._open_fences[lane] = None

    def _hand_over(self, lane: Lane, call: Call, now: float) -> None:
        try:
            lane.way.session.call(call._replace(generation=lane.generation), now)
        except ShardbusError as error:
            if call.done is None:
                self.counters["tells_refused"] += 1
                LOG.warning("a tell to %s could not be sent: %s", call.type, error)
            else:
                call.done(None, error)

    def _send_fence(self, lane: Lane, now: float) -> None:
        fence, session = lane.fence, lane.way.session
        fence.due = now + FENCE_INTERVAL
        if session.flushed < fence.behind:
            return  # the first one still waits for the credit of what is before it
        session.answer_free(routing.fence(lane.type, lane.number, fence.number,
                                          self.settings.sender, fence.entry), now)
        fence.behind = session.flushed + session.waiting
        self.counters["fences_sent"] += 1

    def _wake_all(self) -> None:
        """Something changed that may matter to every lane that waits."""
        for lane in self._lanes.values():
            if lane.held or lane.fence is not None:
                self._changed[lane] = None

    # --- from the ways ---

    def way_opened(self, way: Way) -> None:
        self._wake_all()

    def way_closed(self, way: Way, unsent: list, was_open: bool) -> None:
        self.counters["ways_lost"] += was_open
        for lane in self._lanes.values():
            if lane.way is way:
                lane.clear()
                self._open_fences.pop(lane, None)
        for call in reversed(unsent):
            self._held.put_back(self._lane_of(call), call)
        self._wake_all()

    def all_ways_lost(self) -> None:
        """Nothing is under way, and whoever answers next may know better, or be another cluster."""
        self._version = self._table_due = None
        self._patient = True
        self._types.clear()
        lanes, self._lanes = self._lanes, {}
        self._open_fences.clear()
        self._changed.clear()
        for lane in lanes.values():
            self._held.move(lane, self._lane_of)

    def way_received(self, way: Way, envelope: wire.Envelope) -> None:
        try:
            if envelope.kind == Kind.TABLE:
                self._take_table(envelope.body)
            elif envelope.kind == Kind.MOVED:
                self._take_moved(routing.parse_moved(envelope.body))
            elif envelope.kind in (Kind.FENCE_OK, Kind.PATH_LOST):
                self._take_fence_answer(envelope.kind, routing.parse_fence_answer(envelope.body))
        except (wire.Malformed, wire.TooLarge) as error:
            self.counters[error.error] += 1
            LOG.warning("%s from %s: %s", envelope.kind.name, way, error)

    # --- news about owners ---

    def _watch_table(self, now: float) -> None:
        if self._version is not None or not self._patient or self._ways.home is None:
            return
        if self._table_due is None:
            self._table_due = now + TABLE_PATIENCE
        elif now >= self._table_due:
            self._table_due, self._patient = None, False
            self._wake_all()

    def _take_table(self, body: list) -> None:
        version = routing.table_version(body)
        if self._version is not None:
            # At one version there may be news of nodes that are gone.
            same = version == self._version and self._nodes <= routing.table_nodes(body)
            if version < self._version or same:
                return
        table = routing.parse_table(body)
        self._version, self._table_due, self._nodes = version, None, set(table.fronts)
        self._ways.know(table.fronts)
        for name, entries in table.types.items():
            known = self._types.get(name, ())
            self._types[name] = [new if index >= len(known) or known[index].gives_way(new, table)
                                 else known[index] for index, new in enumerate(entries)]
        for lane in list(self._lanes.values()):
            entries = self._types.get(lane.type)
            if lane.number is None and entries is not None:
                self._held.move(lane, self._lane_of)
            elif entries is not None and lane.number < len(entries):
                self._learn(lane, entries[lane.number], table)
        self._wake_all()

    def _learn(self, lane: Lane, entry: Entry, table: Optional[routing.Table] = None) -> None:
        if lane.learn(entry, table) and (lane.held or lane.way is not None):
            self._changed[lane] = None

    def _take_moved(self, moved: routing.Moved) -> None:
        self.counters["moved"] += 1
        if moved.entry.owner is not None:
            self._ways.know_one(moved.entry.owner, moved.front)
        lane = self._lanes.get((moved.type, moved.shard))
        if lane is not None:
            self._learn(lane, moved.entry)

    def _take_fence_answer(self, kind: Kind, answer: routing.FenceAnswer) -> None:
        lane = self._lanes.get((answer.type, answer.shard))
        if lane is None:
            return
        if kind == Kind.FENCE_OK:
            news = lane.fence_ok(answer, self._ways.open_to(answer.node))
        else:
            news = lane.path_lost(answer)
            if news:
                lane.way.session.end_sent(
                    lambda call: call.type == lane.type and self._lane_of(call) is lane,
                    UnknownOutcome("the way to the owner was lost"))
                lane.clear()
        if news:
            self._open_fences.pop(lane, None)
            self._changed[lane] = None
