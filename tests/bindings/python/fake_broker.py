"""A node that speaks PROTOCOL.md to clients and workers, for tests of a binding without shardbusd.

It hosts `echo` and `counter` itself, gives the types of workers to the worker that greeted last,
and does on request what a real node does rarely: forget its sessions, fall silent, say goodbye,
refuse, starve a client of credit.
"""

import collections
import threading

import msgpack
import zmq

TELL, ASK, REPLY, ERROR = 1, 2, 3, 4
HELLO, WELCOME, REJECT, NO_SESSION, GOODBYE, PING, PONG, CREDIT = 10, 11, 12, 13, 14, 15, 16, 17
WHO, HERE = 19, 20
RESTORE, RELEASE, RELEASED, OFFER = 70, 71, 72, 73
NO_SUCH_METHOD, NO_SUCH_TYPE, OVERLOADED, MALFORMED, BAD_FRAME, UNKNOWN_KIND = 3, 4, 6, 9, 10, 11
NO_SESSION_CODE = 12
GREETED = 1
NODE = ["node-a", 1700000000000000, 3238988543385071, "", "", ""]


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


class Session:
    def __init__(self, hello, credit):
        self.hello = hello
        self.credit = list(credit)
        self.spent = [0, 0]
        self.to_worker = [0, 0]
        self.worker_credit = list(hello.get("credit", [0, 0]))
        self.shards = {}  # (type, shard) -> shard count, of what the worker got messages for
        self.owes = None  # of these, what a worker that leaves has to give back


class FakeBroker(threading.Thread):
    """Use it as a context manager. Attributes may be set at any time from the test."""

    def __init__(self, ping_ms=0, credit=(1024, 4 << 20), reject=None):
        super().__init__(daemon=True)
        self.ping_ms = ping_ms
        self.credit = list(credit)
        self.grants = True  # whether used credit is given back
        self.reject = reject  # the map of a REJECT
        self.silent = False  # reads, but does and says nothing
        self.seen = collections.Counter()  # kinds received
        self.welcomed = 0
        self.released = {}  # (type, shard) -> {id: state}
        self.parts = []  # of RELEASED: shard, states, more
        self.returned = []  # messages that came back with that
        self.lease_ms = 0
        self.greetings = []  # the maps of HELLO
        self._changed = threading.Condition()
        self._calls = collections.deque()
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 0)
        self._router.setsockopt(zmq.RCVHWM, 0)
        self._router.setsockopt(zmq.SNDHWM, 0)  # a full ROUTER drops without a word
        self.address = f"tcp://127.0.0.1:{self._router.bind_to_random_port('tcp://127.0.0.1')}"
        self._wake = self._context.socket(zmq.PULL)
        self._wake.bind("inproc://wake")
        self._sessions = {}  # routing id -> Session
        self._counters = {}
        self._asks = {}  # slot -> (routing id, correlation, empty part)
        self._held = {}  # (type, shard) -> messages, while a worker gives the shard back
        self._slot = 0
        self._running = True
        self._next_session = 0

    # --- from the test ---

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.is_alive():
            self.vanish()
        self._wake.close()
        self._context.term()

    def do(self, function):
        """Runs `function` on the broker's thread and waits for it."""
        done = threading.Event()
        self._calls.append((function, done))
        push = self._context.socket(zmq.PUSH)
        push.connect("inproc://wake")
        push.send(b"")
        push.close()
        assert done.wait(10)

    def wait_until(self, condition, seconds=10):
        with self._changed:
            assert self._changed.wait_for(condition, seconds), "nothing of that kind happened"

    def forget_sessions(self):
        """As after a restart: nobody has a session any more."""
        self.do(self._sessions.clear)

    def vanish(self):
        """As a killed process: every connection breaks, and the port refuses new ones."""
        self.do(lambda: setattr(self, "_running", False))
        self.join()
        self._router.close()

    def say_goodbye(self):
        def run():
            for peer in list(self._sessions):
                self._send(peer, [GOODBYE, 0, None])
            self._sessions.clear()
        self.do(run)

    def send_to_all(self, *raw):
        """Sends the parts to every session as they are."""
        self.do(lambda: [self._router.send_multipart([peer, *raw]) for peer in self._sessions])

    def release(self, type_name, shard, shard_count):
        """Takes a shard back from its worker; what comes meanwhile is held."""
        def run():
            self._held[type_name, shard] = []
            self._send(self._worker_of(type_name), [RELEASE, 0, None, type_name, shard,
                                                    shard_count])
        self.do(run)

    def restore(self, type_name, shard):
        """Gives the states of a released shard to the worker, then the held messages."""
        def run():
            peer = self._worker_of(type_name)
            for entity, state in self.released.pop((type_name, shard)).items():
                self._send(peer, [RESTORE, 0, None, type_name, entity, state])
            for envelope in self._held.pop((type_name, shard)):
                self._to_worker(peer, envelope)
        self.do(run)

    # --- the thread ---

    def run(self):
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._wake, zmq.POLLIN)
        while self._running:
            ready = dict(poller.poll(10000))
            if self._wake in ready:
                self._wake.recv()
                function, done = self._calls.popleft()
                function()
                done.set()
            if self._router in ready:
                peer, *parts = self._router.recv_multipart()
                self._receive(peer, parts)
            with self._changed:
                self._changed.notify_all()

    def _receive(self, peer, parts):
        empty = len(parts) == 2 and not parts[0]
        if len(parts) - empty != 1:
            self._send(peer, [ERROR, 0, None, BAD_FRAME, ""])
            return
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        unpacker.feed(parts[-1])
        start = 0
        try:
            for envelope in unpacker:
                size, start = unpacker.tell() - start, unpacker.tell()
                self.seen[envelope[0]] += 1
                if not self.silent:
                    self._take(peer, envelope, size, empty)
            if start != len(parts[-1]):
                raise ValueError("cut off")
        except ValueError:
            self._send(peer, [ERROR, 0, None, MALFORMED, ""])

    def _send(self, peer, envelope, empty=False):
        self._router.send_multipart([peer, b"", pack(envelope)] if empty else
                                    [peer, pack(envelope)])

    def _take(self, peer, envelope, size, empty):
        kind, flags, correlation, *body = envelope
        session = self._sessions.get(peer)
        if kind == HELLO:
            self._greet(peer, body[0], empty)
        elif kind == WHO:
            self._send(peer, [HERE, 0, None, {"node": NODE, "cluster": "shop"}], empty)
        elif session is None and (kind not in (TELL, ASK) or flags & GREETED):
            refusal = {"code": NO_SESSION_CODE, "text": "greet again"}
            self._send(peer, [NO_SESSION, 0, None, refusal], empty)
        elif kind in (TELL, ASK, REPLY, ERROR):
            self._take_counted(peer, session, envelope, size, empty)
        elif kind == PING:
            self._send(peer, [PONG, 0, None])
        elif kind == GOODBYE:
            del self._sessions[peer]
        elif kind == CREDIT:
            session.worker_credit = list(body[:2])
        elif kind == RELEASED:
            states = self.released.setdefault((body[0], body[1]), {})
            states.update(dict(body[2]))
            self.parts.append(body[1:4])
            self.returned.extend(msgpack.unpackb(raw) for raw in (body[4] if body[4:] else []))
            if not body[3]:
                session.shards.pop((body[0], body[1]), None)
            self._part_if_done(peer, session)
        elif kind == OFFER and not body[0]:
            session.hello = {**session.hello, "types": []}
            session.owes = session.shards
            for (type_name, shard), count in session.shards.items():
                self._send(peer, [RELEASE, 0, None, type_name, shard, count])
            self._part_if_done(peer, session)
        elif kind not in (PONG, OFFER) and correlation is not None:
            self._send(peer, [ERROR, 0, correlation, UNKNOWN_KIND, ""])

    def _part_if_done(self, peer, session):
        if session.owes is not None and not session.owes:
            self._send(peer, [GOODBYE, 0, None])

    def _greet(self, peer, hello, empty):
        if self.reject is not None:
            self._send(peer, [REJECT, 0, None, self.reject], empty)
            return
        self.greetings.append(hello)
        if peer not in self._sessions:
            self._next_session += 1
            self._sessions[peer] = Session(hello, self.credit)
            self.welcomed += 1
        fields = {"session": self._next_session, "node": NODE, "cluster": "shop",
                  "credit": self.credit, "ping_ms": self.ping_ms, "worker_lease_ms": self.lease_ms}
        self._send(peer, [WELCOME, 0, None, fields], empty)

    def _take_counted(self, peer, session, envelope, size, empty):
        if session is not None:
            session.spent[0] += 1
            session.spent[1] += size
            if session.spent[0] > session.credit[0] or session.spent[1] > session.credit[1]:
                self.seen["over credit"] += 1
                self._send(peer, [ERROR, 0, envelope[2], OVERLOADED, ""])
                return
            if self.grants:
                session.credit = [a + b for a, b in zip(self.credit, session.spent)]
                self._send(peer, [CREDIT, 0, None, *session.credit])
        if envelope[0] in (TELL, ASK):
            self._route(peer, envelope, empty)
        else:
            asker = self._asks.pop(envelope[2][1], None)
            if asker is not None:
                back, correlation, with_empty = asker
                self._send(back, [envelope[0], 0, correlation, *envelope[3:]], with_empty)

    # --- entities ---

    def _worker_of(self, type_name):
        found = [peer for peer, session in self._sessions.items()
                 if type_name in dict(session.hello.get("types", []))]
        return found[-1] if found else None

    def _route(self, peer, envelope, empty):
        if isinstance(envelope[4], str):  # either is accepted, one is handed on
            envelope[4] = envelope[4].encode()
        _, _, correlation, type_name, entity_id, method, *rest = envelope
        worker = self._worker_of(type_name)
        if worker is not None:
            self._slot += 1
            self._asks[self._slot] = (peer, correlation, empty)
            port = [NODE[2], self._slot] if envelope[0] == ASK else None
            self._to_worker(worker, [envelope[0], 0, port, *envelope[3:]])
            return
        payload = rest[5] if len(rest) > 5 and rest[5] else b"\xc0"
        answer = self._own_entity(type_name, entity_id, method, payload)
        if envelope[0] == ASK and answer is not None:
            kind, *body = answer
            self._send(peer, [kind, 0, correlation, *body], empty)

    def _to_worker(self, peer, envelope):
        shards = dict(self._sessions[peer].hello["types"])
        place = envelope[3], shard_of(envelope[4], shards[envelope[3]])
        held = self._held.get(place)
        if held is not None:
            held.append(envelope)
            return
        session = self._sessions[peer]
        session.shards[place] = shards[envelope[3]]
        session.to_worker[0] += 1
        session.to_worker[1] += len(pack(envelope))
        if any(sent > most for sent, most in zip(session.to_worker, session.worker_credit)):
            self.seen["worker has no credit"] += 1
        self._send(peer, envelope)

    def _own_entity(self, type_name, entity_id, method, payload):
        if type_name == "echo":
            return None if method == "never" else (REPLY, payload)
        if type_name != "counter":
            return ERROR, NO_SUCH_TYPE, type_name
        if method == "add":
            amount = msgpack.unpackb(payload)["amount"]
            self._counters[entity_id] = self._counters.get(entity_id, 0) + amount
        elif method != "get":
            return ERROR, NO_SUCH_METHOD, method
        return REPLY, pack(self._counters.get(entity_id, 0))


def shard_of(entity_id, shard_count):
    """FNV-1a; the ids of these tests have no {tag}."""
    value = 0xCBF29CE484222325
    for byte in entity_id if isinstance(entity_id, bytes) else entity_id.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value % shard_count


