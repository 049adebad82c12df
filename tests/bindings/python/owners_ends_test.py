"""Whatever happens to nodes and sessions, and whatever nodes say: every ask ends, and only once."""

import random

import pytest
from owners_world import SHARDS, World
from shardbus import error_table as errors
from shardbus import wire
from shardbus.wire import Kind

NAMES = "abc"


class Trouble:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.world = World(NAMES, max_waiting=20)
        self.asked = set()
        self.counter = 1

    def node(self):
        return self.world.nodes[self.random.choice(NAMES)]

    def ask(self):
        name = f"ask {len(self.asked)}"
        try:
            self.world.ask(name, self.random.randrange(SHARDS), self.random.choice((0.5, 5.0)))
            self.asked.add(name)
        except errors.Overloaded:
            assert self.world.client.waiting >= 20

    def reply(self):
        """Answers what a node got: asks with a value, fences in one of three ways, or nothing."""
        node, there = self.node(), self.node()
        taken, node.got = node.got, []
        for kind, correlation, body in taken if self._can_say(node) else ():
            if kind == "ASK":
                node.send(wire.reply(correlation, b"\x01"))
            elif kind == "FENCE":
                generation = (1, self.world.a.key, self.random.randrange(1, self.counter + 1))
                node.send(wire.envelope(
                    self.random.choice((Kind.FENCE_OK, Kind.FENCE_OK, Kind.PATH_LOST)),
                    body[0], body[1], body[2], body[3], list(generation), there.key))

    @staticmethod
    def _can_say(node):
        return node.alive and node.session is not None and node.session.state == "open"

    def end_session(self):
        node = self.node()
        if self._can_say(node):
            if self.random.random() < 0.5:
                node.session.disconnected(self.world.now)
            else:
                node.send(self.random.choice((
                    wire.envelope(Kind.NO_SESSION, {"code": 12}), wire.envelope(Kind.GOODBYE))))

    def die_or_live(self):
        node = self.node()
        node.alive = not node.alive
        if not node.alive and node.session is not None:
            node.session.disconnected(self.world.now)

    def move(self):
        self.counter += 1
        self.world.own(self.random.randrange(SHARDS), self.random.choice([self.node(), None]),
                       self.counter)
        table, node = self.world.make_table(self.random.choice(("abc", "ab", "abc"))), self.node()
        if self._can_say(node):
            node.send(table)

    def lower_credit(self):
        node = self.node()
        node.credit = self.random.choice(((1, 1000), (1000, 1 << 20)))

    def pass_time(self):
        self.world.run(self.random.choice((0.01, 0.2, 1.0)))


@pytest.mark.parametrize("seed", range(200))
def test_every_ask_ends_once(seed):
    trouble = Trouble(seed)
    steps = [trouble.ask] * 6 + [trouble.reply] * 4 + [trouble.pass_time] * 3
    steps += [trouble.end_session, trouble.die_or_live, trouble.move, trouble.lower_credit]
    for _ in range(300):
        trouble.random.choice(steps)()
    for _ in range(12):
        trouble.world.run(0.5)
    assert set(trouble.world.ended) == trouble.asked
    for _ in range(60):  # all is well again
        for node in trouble.world.nodes.values():
            node.alive, node.credit = True, (1000, 1 << 20)
        trouble.world.run(0.5)
        trouble.reply()
    assert trouble.world.client.waiting == 0
    assert trouble.world.client.state == "open"
