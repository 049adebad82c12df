"""A client's or worker's side of a session as a pure state machine: no socket, thread or clock.

The driver (link.py) hands in frames and the time, sends what `take_frames` gives, makes a new
socket when `rebuild_at` is reached, and wakes up at `next_deadline`. Rules: PROTOCOL.md sections 4,
5 and 10.
"""

from __future__ import annotations

import collections
import heapq
import logging
import math
from typing import Any, Callable, NamedTuple, Optional

from . import wire
from .error_table import Expired, Malformed, Overloaded, Stopped, Timeout, TooLarge, UnknownOutcome
from .errors import ShardbusError, error_from_code
from .wire import Kind

LOG = logging.getLogger("shardbus")

HELLO_INTERVAL = 1.0
HELLO_PATIENCE = 3.0
REJECTED_PAUSE = 5.0  # where the node does not say when trying again makes sense
RECONNECT_PAUSE = 0.1
LEAVE_PATIENCE = 2.0  # seconds in which a node that said goodbye answers what it has
SILENT_PINGS = 4
LEASE_PINGS = 4  # so often within a worker's lease the node is asked to renew it
# How much longer we wait than the node was told, so that its own `timeout` can arrive.
GRACE = 0.1
FLUSH_BYTES = 64 << 10

# What the handler gets.
HANDED_ON = frozenset({Kind.TELL, Kind.ASK, Kind.RESTORE, Kind.RELEASE,
                       Kind.TABLE, Kind.MOVED, Kind.FENCE_OK, Kind.PATH_LOST})

# Called once, with the reply's payload or the error.
Done = Callable[[Optional[bytes], Optional[ShardbusError]], None]


class Settings(NamedTuple):
    role: str  # "client" or "worker"
    sender: int
    name: str = ""
    cluster: str = ""
    types: tuple = ()  # of (name, shard_count)
    credit: tuple = (0, 0)
    max_batch: int = 256
    max_waiting: int = 4096  # messages without credit or session
    addresses: tuple = ()  # of nodes, tried in turn
    first: int = 0  # where in `addresses` to begin; taken modulo their number
    table: bool = False  # whether we want to know the owners of shards


class Call(NamedTuple):
    """A message that the application asked for. `done` is None for a tell."""

    type: str
    id: bytes
    method: str
    payload: bytes
    deadline: Optional[float] = None
    done: Optional[Done] = None
    headers: Optional[dict] = None
    generation: Optional[tuple] = None  # of the shard's owner that it is sent to, if known


class _Ask:
    __slots__ = ("call", "sent")

    def __init__(self, call: Call):
        self.call = call
        self.sent = False


class _Free(bytes):
    """An envelope that waits in the queue like others but costs no credit."""


class Handler:
    """What a session tells its owner: a worker, or the routing of a client."""

    def session_opened(self) -> None:
        """A session began."""

    def session_lost(self) -> None:
        """The session is over, and with it everything that the node gave us."""

    def session_refused(self) -> None:
        """An attempt to begin a session failed; the next one is at `rebuild_at`."""

    def received(self, envelope: wire.Envelope) -> None:
        """A message or a command for entities, or news about owners."""

    def given_back(self) -> None:
        """The node has all that `give_back` gave up."""

    def lease_renewed(self) -> None:
        """Handlers may begin again, in case they might not."""


class Session:
    def __init__(self, settings: Settings, handler: Optional[Handler] = None):
        self.settings = settings
        self.handler = handler or Handler()
        self.state = "closed"  # closed, greeting, open, stopped
        self.welcome: Optional[wire.Welcome] = None
        self.rejection: Optional[ShardbusError] = None
        self.rebuild_at: Optional[float] = 0.0
        self.address = ""  # of the node that this is, or will be, a session with
        self._rejected_by: set = set()  # addresses, since the last session
        self.counters: collections.Counter = collections.Counter()
        self.flushed = 0  # messages that left the queue, ever
        self._asks: dict = {}
        self._deadlines: list = []  # heap of (time, correlation)
        self._next_correlation = 1
        # Correlations of asks, tells as Call, answers of a worker as bytes.
        self._waiting: collections.deque = collections.deque()
        self._out: collections.deque = collections.deque()
        self._granted = (0, 0)
        self._spent = (0, 0)
        self._leaves_at: Optional[float] = None  # the node said goodbye: until then for answers
        self._giving_back = False
        # Of a worker: until then nobody else has its entities, should the node stand still.
        self._lease_until = math.inf
        self._pings: collections.deque = collections.deque()  # times of those without an answer
        self._hello_at = self._patience_ends = 0.0
        self._heard_at = self._pinged_at = self._ticked_at = 0.0

    # --- from the application ---

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def sessions(self) -> tuple:
        """Gives the sessions that need a socket: this one."""
        return (self,)

    def call(self, call: Call, now: float) -> None:
        """Sends a tell or an ask as soon as session and credit allow it, in the order of calls.

        Raises Stopped, Overloaded or TooLarge; then nothing was sent, and `done` is not called.
        """
        if self.state == "stopped":
            raise Stopped()
        if len(self._waiting) >= self.settings.max_waiting:
            raise Overloaded(f"{len(self._waiting)} messages wait for the node already")
        most = self.welcome.payload_bytes if self.welcome else wire.PAYLOAD_BYTES
        if len(call.payload) > most:
            raise TooLarge(f"payload of {len(call.payload)} bytes, limit {most}")
        if call.done is None:
            self._waiting.append(call)
        else:
            correlation = self._next_correlation
            self._next_correlation = correlation % wire.MAX_INTEGER + 1
            self._asks[correlation] = _Ask(call)
            if call.deadline is not None:
                heapq.heappush(self._deadlines, (call.deadline, correlation))
            self._waiting.append(correlation)
        self._flush(now)

    def answer(self, envelope: bytes, now: float) -> None:
        """Sends a reply or an error of a worker. Never refused: the node asked for it."""
        if self.state == "open":
            self._waiting.append(envelope)
            self._flush(now)

    def answer_free(self, envelope: bytes, now: float) -> None:
        """Sends what needs no credit, but not before what was handed over before."""
        self.answer(_Free(envelope), now)

    def send(self, envelope: bytes) -> None:
        """Sends what needs no credit; ignored without a session."""
        if self.state == "open":
            self._out.append(envelope)

    def grant(self, envelopes: int, size: int) -> None:
        self.send(wire.envelope(Kind.CREDIT, envelopes, size))

    def leased(self, now: float) -> bool:
        """Whether a worker may begin a handler. Any thread may ask."""
        return now < self._lease_until

    def give_back(self) -> bool:
        """Asks the node to take all of a worker's entities back. False: it has none of them."""
        self._giving_back = True
        self.send(wire.envelope(Kind.OFFER, []))
        return self.state == "open"

    def take_back(self) -> list:
        """Gives the calls that were not sent, in order, and forgets them."""
        items = [self._asks.pop(item, None) if isinstance(item, int) else item
                 for item in self._waiting if not isinstance(item, bytes)]
        self._waiting.clear()
        return [item.call if isinstance(item, _Ask) else item for item in items if item]

    def end_sent(self, which: Callable[[Call], bool], error: ShardbusError) -> None:
        """Ends asks that were sent and have no answer."""
        self._end_asks(lambda ask: error if ask.sent and which(ask.call) else None)

    def stop(self) -> None:
        """Says goodbye; every ask that is still open ends."""
        self.send(wire.envelope(Kind.GOODBYE))
        self.state = "stopped"
        self._end_asks(lambda ask: UnknownOutcome("stopped") if ask.sent else Stopped())
        self._waiting.clear()

    # --- from the driver ---

    def connected(self, now: float, address: str = "") -> None:
        """There is a new socket, to `address`: greet."""
        if self.state == "stopped":
            return
        self.address = address
        self.rebuild_at = None
        self._greet(now)

    def disconnected(self, now: float) -> None:
        """The connection broke, or none could be made: go on with another socket."""
        if self.state == "open":
            self._lose("the connection broke")
            self._close(now)
        elif self.state == "greeting":
            self._close(now + RECONNECT_PAUSE)

    def tick(self, now: float) -> None:
        slept = now - self._ticked_at
        self._ticked_at = now
        if self.state == "greeting":
            self._keep_greeting(now)
        elif self.state == "open":
            self._watch(now, slept)
            self._leave_if_done(now)
        self._expire(now)

    def next_deadline(self) -> Optional[float]:
        times = [self._deadlines[0][0] + GRACE] if self._deadlines else []
        if self.rebuild_at is not None and self.state != "stopped":
            times.append(self.rebuild_at)
        if self.state == "greeting":
            times.append(min(self._hello_at, self._patience_ends))
        elif self.state == "open" and self.welcome.ping_ms:
            times.append(max(self._heard_at, self._pinged_at) + self.welcome.ping_ms / 1000)
        if self.state == "open" and self.welcome.worker_lease_ms:
            times.append(self._pinged_at + self._lease / LEASE_PINGS)
        if self.state == "open" and self._leaves_at is not None:
            times.append(self._leaves_at)
        return min(times, default=None)

    def take_frames(self) -> list:
        """Gives what is to be sent, in frames as large as the node takes them."""
        batch = self.welcome.batch if self.state == "open" and self.welcome else 1
        most = min(FLUSH_BYTES, self.welcome.frame_bytes if self.welcome else FLUSH_BYTES)
        frames = []
        while self._out:
            frame = [self._out.popleft()]
            size = len(frame[0])
            while self._out and len(frame) < batch and size + len(self._out[0]) <= most:
                size += len(self._out[0])
                frame.append(self._out.popleft())
            frames.append(b"".join(frame))
        return frames

    def receive(self, parts: list, now: float) -> None:
        """Takes one ZeroMQ message."""
        self._heard_at = now
        if len(parts) == 2 and not parts[0]:
            parts = parts[1:]
        if len(parts) != 1:
            self.counters["bad_frame"] += 1
            return
        for item in wire.read_frame(parts[0]):
            if isinstance(item, wire.Bad):
                self._refuse(item)
            else:
                self._take(item, now)
        self._leave_if_done(now)

    # --- greeting ---

    def _greet(self, now: float) -> None:
        self.state = "greeting"
        self.welcome = None
        self._leaves_at = None
        self._out.clear()
        self._patience_ends = now + HELLO_PATIENCE
        self._hello_at = now
        self._keep_greeting(now)

    def _keep_greeting(self, now: float) -> None:
        if now >= self._patience_ends:
            self.counters["no_welcome"] += 1
            self._close(now + RECONNECT_PAUSE)
        elif now >= self._hello_at:
            self._hello_at = now + HELLO_INTERVAL
            self._out.append(self._hello())

    def _hello(self) -> bytes:
        own = self.settings
        fields: dict = {"version": [1, 0], "role": own.role, "cluster": own.cluster,
                        "sender": own.sender, "name": own.name, "max_batch": own.max_batch}
        if own.table:
            fields["table"] = True
        if own.role == "worker":
            fields["types"] = [list(hosted) for hosted in own.types]
            fields["credit"] = list(own.credit)
        return wire.envelope(Kind.HELLO, fields)

    def _take_welcome(self, welcome: wire.Welcome, now: float) -> None:
        if self.state == "open" and self.welcome.session == welcome.session:
            return  # the answer to a repeated HELLO
        if self.state == "open":
            self._lose("the node began another session")
        self.state = "open"
        self.welcome = welcome
        self.rejection = None
        self._rejected_by.clear()
        self.rebuild_at = None
        self._granted, self._spent = welcome.credit, (0, 0)
        self._ticked_at = self._pinged_at = now
        self._pings.clear()
        # The node was there after our HELLO left; when it spoke, nobody can tell.
        greeted = self._hello_at - HELLO_INTERVAL
        self._lease_until = greeted + self._lease if self._lease else math.inf
        self._out.clear()
        self.handler.session_opened()
        self._flush(now)

    def _take_reject(self, refusal: wire.Refusal, now: float) -> None:
        if self.state != "greeting":
            return
        self.rejection = error_from_code(refusal.code, refusal.text)
        pause, what_next = self._after_reject(refusal.retry_after_ms / 1000 or REJECTED_PAUSE)
        LOG.warning("rejected by %s: %s; %s", self.address or "the node", self.rejection, what_next)
        self._close(now + pause)

    def _after_reject(self, pause: float) -> tuple:
        """Another node may take us at once, if this one merely cannot now: each is asked once."""
        number = len(set(self.settings.addresses))
        self._rejected_by.add(self.address)
        if number <= 1:
            return pause, f"trying again in {pause:g} s"
        if self.rejection.retry != "no" and len(self._rejected_by) < number:
            return RECONNECT_PAUSE, "going on with the next address"
        self._rejected_by.clear()
        return pause, f"going on with the next address in {pause:g} s"

    # --- the end of a session ---

    def _close(self, rebuild_at: float) -> None:
        refused = self.state == "greeting"
        self.state = "closed"
        self.rebuild_at = None if self._giving_back else rebuild_at
        self._out.clear()
        if refused:
            self.handler.session_refused()

    def _lose(self, why: str) -> None:
        """What was sent and has no answer may have happened; what was not sent stays."""
        self.counters["sessions_lost"] += 1
        LOG.info("session lost: %s", why)
        self._end_asks(lambda ask: UnknownOutcome(why) if ask.sent else None)
        self._waiting = collections.deque(
            item for item in self._waiting if not isinstance(item, bytes))
        self.handler.session_lost()

    def _take_no_session(self, refusal: wire.Refusal, now: float) -> None:
        # While greeting it speaks of what was sent before the HELLO.
        if self.state != "open":
            return
        self._lose(str(error_from_code(refusal.code, refusal.text)))
        if self._giving_back:
            self._close(now)
        else:
            self._greet(now)

    def _take_goodbye(self, now: float) -> None:
        """The node is about to stop: what was sent is still answered, the rest goes elsewhere."""
        if self._giving_back:
            self.handler.given_back()
            return
        if self.state == "open" and self._leaves_at is None:
            self._leaves_at = now + LEAVE_PATIENCE
            self._leave_if_done(now)

    def _leave_if_done(self, now: float) -> None:
        if self._leaves_at is None or self.state != "open":
            return
        if now >= self._leaves_at or not any(ask.sent for ask in self._asks.values()):
            self._lose("the node said goodbye")
            self._close(now + RECONNECT_PAUSE)

    @property
    def _lease(self) -> float:
        return self.welcome.worker_lease_ms / 1000 if self.welcome else 0.0

    def _ping(self, now: float) -> None:
        self._pinged_at = now
        self._pings.append(now)
        self.send(wire.envelope(Kind.PING))

    def _take_pong(self) -> None:
        sent = self._pings.popleft() if self._pings else None
        if sent is not None and self._lease:
            self._lease_until = sent + self._lease
            self.handler.lease_renewed()

    def _watch(self, now: float, slept: float) -> None:
        if self._lease and now - self._pinged_at >= self._lease / LEASE_PINGS:
            self._ping(now)
        interval = self.welcome.ping_ms / 1000
        if not interval:
            return
        if slept > 2 * interval:
            self._heard_at = now  # it was us who did not listen
        silence = now - self._heard_at
        if silence >= SILENT_PINGS * interval:
            self._lose("the node is silent")
            self._close(now)
        elif silence >= interval and now - self._pinged_at >= interval:
            self._ping(now)

    # --- what is received ---

    def _take(self, envelope: wire.Envelope, now: float) -> None:
        kind, value = envelope.kind, envelope.value
        if kind in (Kind.REPLY, Kind.ERROR):
            self._take_answer(envelope)
        elif kind == Kind.PING:
            self.send(wire.envelope(Kind.PONG))
        elif kind == Kind.PONG:
            self._take_pong()
        elif kind == Kind.WELCOME:
            self._take_welcome(value, now)
        elif kind == Kind.REJECT:
            self._take_reject(value, now)
        elif kind == Kind.NO_SESSION:
            self._take_no_session(value, now)
        elif kind == Kind.GOODBYE:
            self._take_goodbye(now)
        elif kind == Kind.CREDIT:
            self._granted = tuple(map(max, self._granted, value))
            self._flush(now)
        elif kind in HANDED_ON and self.state == "open":
            self.handler.received(envelope)

    def _take_answer(self, envelope: wire.Envelope) -> None:
        answer: wire.Reply = envelope.value
        if self.settings.role == "worker" and self.state == "open":
            self.handler.received(envelope)  # for its credit
        correlation = answer.correlation
        ask = self._asks.pop(correlation, None) if isinstance(correlation, int) else None
        if ask is None:
            self.counters["late_answers"] += 1
            if correlation is None and answer.code:
                LOG.warning("the node refused something: %s",
                            error_from_code(answer.code, answer.text))
        elif answer.code:
            ask.call.done(None, error_from_code(answer.code, answer.text))
        else:
            ask.call.done(answer.payload, None)

    def _refuse(self, item: wire.Bad) -> None:
        self.counters[item.error] += 1
        correlation = item.correlation
        if isinstance(correlation, int) and correlation in self._asks:
            self._asks.pop(correlation).call.done(None, UnknownOutcome("an unreadable answer"))
        elif correlation is not None and self.settings.role == "worker":
            code = TooLarge.code if item.error == "too_large" else Malformed.code
            self._waiting.append(wire.error(correlation, code))

    # --- what is sent ---

    def _flush(self, now: float) -> None:
        # With a table the routes say what still goes through this node, and in which order; a
        # worker has answers to give.
        own = self.settings
        if self._leaves_at is not None and own.role == "client" and not own.table:
            return
        while self._waiting and self.state == "open":
            item = self._waiting[0]
            envelope = self._encoded(item, now)
            is_free = envelope is None or isinstance(item, _Free)
            if not is_free and not self._pay(len(envelope)):
                return
            self._waiting.popleft()
            self.flushed += 1
            if envelope is None:
                continue
            if isinstance(item, int):
                self._asks[item].sent = True
            self._out.append(envelope)

    def _encoded(self, item: Any, now: float) -> Optional[bytes]:
        """Gives None for what is not to be sent any more."""
        if isinstance(item, bytes):
            return item
        if isinstance(item, Call):
            return wire.tell(item.type, item.id, item.method, item.payload, item.headers,
                             generation=item.generation)
        if item not in self._asks:
            return None
        call = self._asks[item].call
        left = 0
        if call.deadline is not None:
            left = int((call.deadline - now) * 1000)
            if left <= 0:
                self._end(item, Expired())
                return None
        return wire.ask(item, call.type, call.id, call.method, call.payload,
                        min(left, wire.TIME_LEFT_MS), call.headers, generation=call.generation)

    def _pay(self, size: int) -> bool:
        spent = (self._spent[0] + 1, self._spent[1] + size)
        if spent[0] > self._granted[0] or spent[1] > self._granted[1]:
            self.counters["waits_for_credit"] += 1
            return False
        self._spent = spent
        return True

    # --- the end of asks ---

    def _end(self, correlation: int, error: ShardbusError) -> None:
        self._asks.pop(correlation).call.done(None, error)

    def _end_asks(self, error_of: Callable[[_Ask], Optional[ShardbusError]]) -> None:
        for correlation, ask in list(self._asks.items()):
            error = error_of(ask)
            if error is not None:
                self._end(correlation, error)

    def _expire(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] + GRACE <= now:
            _, correlation = heapq.heappop(self._deadlines)
            ask = self._asks.get(correlation)
            if ask is None:
                continue
            self._end(correlation, Timeout() if ask.sent else self.rejection or Expired())
