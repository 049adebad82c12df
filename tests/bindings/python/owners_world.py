"""Nodes in memory around a client that goes to the owners: no socket, and time moved by hand."""

from shardbus import hashing, wire
from shardbus.owners import Owners
from shardbus.session import Call, Settings
from shardbus.wire import Kind

SHARDS = 4


def entity_of(shard):
    """Gives an id in this shard."""
    return next(b"%d" % n for n in range(1000) if hashing.shard_of(b"%d" % n, SHARDS) == shard)


class Node:
    """What the client thinks is a node: it greets, and keeps all else for the test."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.key = hashing.node_key(name, 1)
        self.address = f"tcp://{name}"
        self.alive = True
        self.reject = None
        self.credit = (1000, 1 << 20)
        self.session = None  # the client's, while it lasts
        self.greetings = []
        self.got = []  # (name of the kind, correlation, body)

    @property
    def info(self):
        return [self.name, 1, self.key, self.address, "", ""]

    def take(self, session, frame):
        for envelope in wire.read_frame(frame):
            if envelope.kind == Kind.HELLO:
                self.greetings.append(envelope.body[0])
                self._greet(session)
            elif envelope.kind not in (Kind.PING, Kind.PONG):
                self.got.append((envelope.kind.name, envelope.correlation, envelope.body))

    def _greet(self, session):
        if self.reject is not None:
            session.receive([wire.envelope(Kind.REJECT, self.reject)], self.world.now)
            return
        self.session = session
        self.send(wire.envelope(Kind.WELCOME, {
            "session": len(self.greetings), "node": self.info, "credit": list(self.credit),
            "ping_ms": 2000}))
        if self.world.table is not None:
            self.send(self.world.table)

    def send(self, *envelopes):
        self.session.receive([b"".join(envelopes)], self.world.now)

    def methods(self):
        """Gives what came since the last look: methods, or the names of other kinds."""
        taken, self.got = self.got, []
        return [body[2] if kind in ("TELL", "ASK") else kind for kind, _, body in taken]

    def fences(self):
        return [body for kind, _, body in self.got if kind == "FENCE"]

    def answer_fence(self, via=None, generation=None, kind=Kind.FENCE_OK, number=None):
        """Answers the last fence that came here (or to `via`) as if it had come out here."""
        body = (via or self).fences()[-1]
        (via or self).send(wire.envelope(
            kind, body[0], body[1], body[2] if number is None else number, body[3],
            list(generation or body[4]), self.key))

    def moved(self, shard, owner, generation):
        self.send(wire.envelope(Kind.MOVED, "t", shard, owner.key, list(generation),
                                owner.address, 0))


class World:
    def __init__(self, names="abc", table=True, **settings):
        self.now = 100.0
        self.nodes = {name: Node(self, name) for name in names}
        self.table = None
        self.owners = [(self.nodes["a"], 1)] * SHARDS  # (node or None, counter of generation)
        self.version = 0
        self.term = 1  # of whoever publishes tables
        if table:
            self.table = self.make_table()
        self.client = Owners(Settings("client", 7, addresses=("tcp://a", "tcp://b"), **settings))
        self._attempts = {}
        self.ended = {}
        self.run()

    def __getattr__(self, name):
        return self.nodes[name]

    def make_table(self, nodes=None):
        self.version += 1
        listed = [self.nodes[name] for name in nodes or self.nodes]
        keys = [node.key for node in self.nodes.values()]
        entries = [[keys.index(node.key) if node else None, 1, 0, counter]
                   for node, counter in self.owners]
        version = [self.term, keys[0], self.version]
        self.table = wire.envelope(Kind.TABLE, [node.info for node in listed], version, keys,
                                   [["t", SHARDS, entries]])
        return self.table

    def generation(self, counter):
        return (1, self.nodes["a"].key, counter)

    def own(self, shard, node, counter):
        self.owners[shard] = (node, counter)

    def run(self, seconds=0.0):
        """Lets time pass, then lets everything arrive."""
        self.now += seconds
        for _ in range(5):
            self.client.tick(self.now)
            for session in self.client.sessions:
                if session.rebuild_at is not None and session.rebuild_at <= self.now:
                    self._connect(session)
                node = self._node_of(session)
                for frame in session.take_frames():
                    if node.alive:
                        node.take(session, frame)

    def _connect(self, session):
        self._attempts[session] = self._attempts.get(session, -1) + 1
        session.connected(self.now)
        if not self._node_of(session).alive:
            session.disconnected(self.now)

    def _node_of(self, session):
        addresses = session.settings.addresses
        address = addresses[max(0, self._attempts.get(session, 0)) % len(addresses)]
        return self.nodes[address[-1]]

    def kill(self, node):
        node.alive = False
        node.session.disconnected(self.now)
        self.run()

    def tell(self, method, shard=0, type_name="t"):
        self.client.call(Call(type_name, entity_of(shard), method, b"\xc0"), self.now)
        self.run()

    def ask(self, method, shard=0, timeout=5.0):
        def done(value, error):
            assert method not in self.ended, "an ask ended twice"
            self.ended[method] = value if error is None else type(error).__name__

        self.client.call(Call("t", entity_of(shard), method, b"\xc0", self.now + timeout, done),
                         self.now)
        self.run()
