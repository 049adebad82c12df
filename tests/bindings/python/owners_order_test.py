"""Thousands of orders of events: messages of one client to one entity never overtake each other.

The nodes of this model forward along queues that are emptied in any order, and hand shards over at
any moment; the client learns of it from tables and MOVED, sooner or later. Every session lasts, so
nothing may be lost either.
"""

import random

import pytest
from owners_world import SHARDS, World
from shardbus import hashing, wire
from shardbus.wire import Kind

SEEDS = range(200)
NAMES = "abcd"


def shard_of(item):
    kind, body = item
    return body[1] if kind == "FENCE" else hashing.shard_of(body[1], SHARDS)


class Model:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.world = World(NAMES)
        self.next = {name: ["a"] * SHARDS for name in NAMES}  # to whom a node forwards
        self.forwarded = set()  # (node, shard)
        self.links = {}  # (from, to) -> queue of what was forwarded
        self.news = []  # (node, envelope) for the client
        self.handled = [[] for _ in range(SHARDS)]
        self.sent = [0] * SHARDS
        self.counter = 1

    def owner(self, shard):
        return self.world.owners[shard][0].name

    def arrive(self, name, origin, item):
        """A message or a fence comes to a node, which keeps it or passes it on."""
        kind, body = item
        fence, shard = kind == "FENCE", shard_of(item)
        if self.owner(shard) != name:
            to = self.next[name][shard]
            self.forwarded.add((name, shard))
            self.links.setdefault((name, to), []).append((origin, item))
            if not fence and body[3] is not None and name == origin:
                node, counter = self.world.owners[shard]
                self.news.append((name, wire.envelope(
                    Kind.MOVED, "t", shard, node.key, list(self.world.generation(counter)),
                    node.address, 0)))
        elif fence:
            node, counter = self.world.owners[shard]
            self.news.append((origin, wire.envelope(
                Kind.FENCE_OK, "t", shard, body[2], body[3],
                list(self.world.generation(counter)), node.key)))
        else:
            self.handled[shard].append(int(body[2]))

    # --- what may happen next ---

    def send(self):
        shard = self.random.randrange(SHARDS)
        self.sent[shard] += 1
        self.world.tell(str(self.sent[shard]), shard)

    def serve(self):
        node = self.world.nodes[self.random.choice(NAMES)]
        if node.got:
            kind, _, body = node.got.pop(0)
            self.arrive(node.name, node.name, (kind, body))

    def forward(self):
        busy = [link for link, queue in self.links.items() if queue]
        if busy:
            link = self.random.choice(busy)
            self.arrive(link[1], *self.links[link].pop(0))

    def tell_client(self):
        if self.news:
            name, envelope = self.news.pop(self.random.randrange(len(self.news)))
            self.world.nodes[name].send(envelope)
            self.world.run()

    def hand_over(self):
        shard, to = self.random.randrange(SHARDS), self.random.choice(NAMES)
        source = self.owner(shard)
        # A node fences its own old way before it owns again (section 12.4, rule 6).
        under_way = any(shard_of(item) == shard for queue in self.links.values()
                        for _, item in queue)
        if to == source or (under_way and (to, shard) in self.forwarded):
            return
        self.counter += 1
        self.world.own(shard, self.world.nodes[to], self.counter)
        self.next[source][shard] = to

    def publish(self):
        table = self.world.make_table()
        for name in NAMES:
            if self.world.nodes[name].session is not None:
                self.news.append((name, table))

    def pass_time(self):
        self.world.run(self.random.choice((0.01, 0.3, 1.1)))

    def settle(self):
        """Nothing new happens; all that is under way arrives."""
        self.publish()
        for _ in range(10000):
            waiting = self.world.client.waiting
            busy = any(node.got for node in self.world.nodes.values()) or any(self.links.values())
            if not (waiting or busy or self.news):
                return
            for _ in range(4):
                self.serve()
                self.forward()
            self.tell_client()
            self.world.run(0.1)
        raise AssertionError("it does not come to rest")


@pytest.mark.parametrize("seed", SEEDS)
def test_order(seed):
    model = Model(seed)
    steps = [model.send] * 6 + [model.serve] * 6 + [model.forward] * 3 + [model.tell_client] * 3
    steps += [model.hand_over, model.publish, model.pass_time]
    for _ in range(400):
        model.random.choice(steps)()
    model.settle()
    for shard in range(SHARDS):
        assert model.handled[shard] == list(range(1, model.sent[shard] + 1))
