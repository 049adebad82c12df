"""What other systems of this kind promise, asked of real nodes (tests/PEERS.md)."""

import collections
import contextlib
import pathlib
import signal
import sys
import threading
import time

import pytest

from daemons import SOURCE, Daemon, ctl, ctl_json, free_port, run_daemon
from raw_peer import wait_until

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)


class Cluster:
    """Nodes n1, n2, ..., which join through the first one that still runs."""

    def __init__(self, stack, size, *flags):
        self._stack = stack
        self._flags = flags
        self.nodes = {}
        for number in range(1, size + 1):
            self.join(f"n{number}")
        self.wait(size)

    def join(self, name, *flags):
        seeds = [node.address for node in self.nodes.values()][:2]
        seeds = ("--seeds", ",".join(seeds)) if seeds else ()
        node = Daemon("--name", name, *seeds, *self._flags, *flags)
        self.nodes[name] = self._stack.enter_context(node).ready()
        return self.nodes[name]

    @property
    def any(self):
        return next(iter(self.nodes.values())).address

    def wait(self, members):
        """Waits until there are so many members, all agree, and no shard is on its way."""
        wait_until(lambda: len(ctl_json("members", node=self.any)) == members, "members")
        done = ctl("wait", "--members", str(members), "--timeout", "20s", node=self.any)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: not ctl_json("moves", node=self.any)["open"], "no open moves")

    def entries(self, type_name="counter"):
        """Gives the owner of each shard of a type, with the term and number of its right."""
        (found,) = ctl_json("shards", "--type", type_name, node=self.any)
        return [(owner, (right[0], right[2])) for _, owner, right, *_ in found["shards"]]

    def counts(self, type_name="counter"):
        return collections.Counter(owner for owner, _ in self.entries(type_name))

    def entities(self):
        """Gives how many entities each node runs."""
        return {name: ctl_json("status", node=node.address)["entities"]
                for name, node in self.nodes.items()}

    def coordinator(self):
        return next(one["name"] for one in ctl_json("members", node=self.any)
                    if one["coordinator"])

    def owned_by(self, name, count):
        """Gives ids of counters that a node owns."""
        owners = (ctl_json("where", "counter", f"c{i}", node=self.any)["owner"] for i in range(200))
        found = [f"c{i}" for i, owner in enumerate(owners) if owner == name]
        assert len(found) >= count
        return found[:count]


@pytest.fixture(name="start")
def fixture_start():
    with contextlib.ExitStack() as stack:
        yield lambda size, *flags: Cluster(stack, size, *flags)


def add(node, name, amount=1):
    return ctl_json("ask", "counter", name, "add", f'{{"amount": {amount}}}',
                    node=node.address)["reply"]


# --- entities ----------------------------------------------------------------------------------

def test_the_first_message_starts_one_entity_at_its_owner(start):
    cluster = start(2)
    assert cluster.entities() == {"n1": 0, "n2": 0}
    for node in cluster.nodes.values():
        add(node, "c1")
    owner = ctl_json("where", "counter", "c1", node=cluster.any)["owner"]
    assert cluster.entities() == {"n1": int(owner == "n1"), "n2": int(owner == "n2")}
    names = [f"c{i}" for i in range(100)]
    for name in names:
        add(cluster.nodes["n1"], name)
    at = collections.Counter(ctl_json("where", "counter", name, node=cluster.any)["owner"]
                             for name in names)
    assert cluster.entities() == at and len(at) == 2


def test_a_tell_has_nobody_to_answer(start):
    cluster = start(2, "--builtin-types", "false")
    first, second = cluster.nodes.values()

    @shardbus.host("cart", shards=4)
    class Cart:
        def __init__(self, ctx):
            self._asked = []

        def note(self, reply: shardbus.ReplyPort):
            self._asked.append(reply.valid)
            reply.send(None)

        def noted(self):
            return self._asked

    with shardbus.Worker(second.address, [Cart]), shardbus.connect(first.address) as bus:
        cart = bus.entity("cart", "c")
        cart.tell("note")
        cart.ask("note")
        cart.tell("note")
        assert cart.ask("noted") == [False, True, False]


def test_a_type_runs_where_it_is_hosted_and_every_node_routes_to_it(start):
    cluster = start(3, "--builtin-types", "false")

    @shardbus.host("cart", shards=16)
    class Cart:
        def __init__(self, ctx):
            self._ctx = ctx

        def where(self):
            return self._ctx.node

    @shardbus.host("mail", shards=16)
    class Mail(Cart):
        pass

    first, second, _ = cluster.nodes.values()
    with shardbus.Worker(first.address, [Cart]), shardbus.Worker(second.address, [Mail]):
        for name in ("cart", "mail"):
            done = ctl("--timeout", "20s", "wait", "--type", name, node=cluster.any)
            assert done.returncode == 0, done.stderr
        assert (cluster.counts("cart"), cluster.counts("mail")) == ({"n1": 16}, {"n2": 16})
        for node in cluster.nodes.values():
            with shardbus.connect(node.address) as bus:
                for i in range(20):
                    assert bus.entity("cart", f"e{i}").ask("where") == "n1"
                    assert bus.entity("mail", f"e{i}").ask("where") == "n2"


# --- who gets which shard ----------------------------------------------------------------------

def test_joiners_get_their_part_once_levelling_is_resumed(start):
    cluster = start(1)
    for i in range(20):
        assert add(cluster.nodes["n1"], f"c{i}") == 1
    ctl_json("rebalance", "--suspend", node=cluster.any)
    before = cluster.entries()
    for members in (2, 3, 4):
        cluster.join(f"n{members}")
        cluster.wait(members)
    assert cluster.entries() == before
    assert all(add(cluster.nodes["n4"], f"c{i}") == 2 for i in range(20))
    ctl_json("rebalance", "--resume", node=cluster.any)
    wait_until(lambda: set(cluster.counts().values()) == {64}, "all have their part")
    # A shard that stays has not been anywhere else meanwhile.
    assert all(new == old or new[0] != "n1" for old, new in zip(before, cluster.entries()))
    assert all(add(node, f"c{i}") == turn for turn, node in enumerate(cluster.nodes.values(), 3)
               for i in range(20))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("decides", [True, False])
def test_the_shards_of_a_lost_node_move_and_all_others_stay(start, number, decides):
    cluster = start(3)
    lost = next(name for name in cluster.nodes if (name == cluster.coordinator()) == decides)
    name, other = (name for name in cluster.nodes if name != lost)
    kept = cluster.owned_by(other, 1)[0]
    gone = cluster.owned_by(lost, 3)
    for entity in (kept, *gone):
        add(cluster.nodes[name], entity)
    before = cluster.entries()
    node = cluster.nodes.pop(lost)
    node.send(number)
    assert add(cluster.nodes[name], kept) == 2  # needs no coordinator
    cluster.wait(2)
    after = cluster.entries()
    for old, new in zip(before, after):
        assert new == old if old[0] != lost else new[0] != lost and new[1] > old[1]
    assert max(cluster.counts().values()) - min(cluster.counts().values()) <= 1
    assert [add(cluster.nodes[other], entity) for entity in gone] == [1] * 3
    assert add(cluster.nodes[other], kept) == 3


def test_two_of_five_leave_and_the_others_keep_their_shards(start):
    cluster = start(5)
    names = [f"c{i}" for i in range(40)]
    for name in names:
        add(cluster.nodes["n2"], name)
    first = cluster.coordinator()
    leavers = (first, next(name for name in cluster.nodes if name != first))
    before = cluster.entries()
    begin = time.monotonic()
    leaving = [cluster.nodes.pop(name) for name in leavers]
    for node in leaving:
        node.send(signal.SIGTERM)
    for node in leaving:
        assert node.wait() == 0, node.log()
    assert time.monotonic() - begin < 15
    cluster.wait(3)
    after = cluster.entries()
    for old, new in zip(before, after):
        assert new == old if old[0] not in leavers else new[0] in cluster.nodes
    assert sum(cluster.entities().values()) == len(names)
    assert all(add(next(iter(cluster.nodes.values())), name) == 2 for name in names)


def test_a_node_without_shards_leaves_at_once(start):
    cluster = start(2)
    idle = cluster.join("idle", "--builtin-types", "false")
    cluster.wait(3)
    before = cluster.entries()
    begin = time.monotonic()
    idle.send(signal.SIGTERM)
    assert idle.wait() == 0, idle.log()
    assert time.monotonic() - begin < 5
    assert cluster.entries() == before


def test_a_node_joins_while_the_coordinator_leaves(start):
    cluster = start(3)
    leaver = cluster.nodes.pop(cluster.coordinator())
    leaver.send(signal.SIGTERM)
    cluster.join("late")
    assert leaver.wait() == 0, leaver.log()
    cluster.wait(3)
    wait_until(lambda: cluster.counts()["late"] >= 85, "it has its part")
    assert add(cluster.nodes["late"], "c") == 1


def test_the_order_of_starts_does_not_matter():
    addresses = [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    seeds = ("--seeds", ",".join(addresses))
    with contextlib.ExitStack() as stack:
        nodes = []
        for number in (2, 1, 0):
            nodes.append(stack.enter_context(Daemon("--name", f"n{number}", *seeds,
                                                    listen=addresses[number])))
            if number:
                nodes[-1].wait_for_log("daemon.started")
        for node in nodes:
            node.ready()
        clusters = {ctl_json("status", node=address)["cluster_id"] for address in addresses}
        assert len(clusters) == 1
        done = ctl("wait", "--members", "3", node=addresses[0])
        assert done.returncode == 0, done.stderr


def test_what_waits_for_the_first_owner_is_handled_when_there_is_one():
    address = f"tcp://127.0.0.1:{free_port()}"
    with Daemon("--name", "first", "--min-members", "2", listen=address) as first:
        first.wait_for_log("below minimum members: 1 of 2, not allocating")
        with shardbus.connect(address) as bus:
            asks = [bus.entity("counter", "c").ask_future("add", {"amount": 1}, timeout=20)
                    for _ in range(10)]
            wait_until(lambda: ctl_json("status", node=address)["counters"]["held_messages"] == 10,
                       "they wait")
            with Daemon("--name", "second", "--min-members", "2", "--seeds", address) as second:
                second.ready()
                assert [ask.result(20) for ask in asks] == list(range(1, 11))
                first.ready()
                (found,) = ctl_json("shards", "--type", "counter", node=address)
                owners = [shard[1] for shard in found["shards"]]
                assert owners.count("first") == owners.count("second") == 128


def test_a_node_that_can_carry_nothing_is_refused():
    done = run_daemon("--check-config", "--capacity", "0")
    assert done.returncode == 2 and "number 1..1000" in done.stderr, done.stderr


# --- moves -------------------------------------------------------------------------------------

def test_a_shard_moves_there_and_back(start):
    cluster = start(2)
    ctl_json("rebalance", "--suspend", node=cluster.any)
    where = ctl_json("where", "counter", "c", node=cluster.any)
    shard, here = f"counter:{where['shard']}", where["owner"]
    there = "n2" if here == "n1" else "n1"
    seen = [where["generation"]]
    for turn, target in enumerate((there, here, there, here), 1):
        assert add(cluster.nodes["n1"], "c") == turn
        ctl_json("move", shard, target, node=cluster.any)
        where = ctl_json("where", "counter", "c", node=cluster.any)
        assert where["owner"] == target
        seen.append(where["generation"])
    assert seen == sorted(seen) and len(set(map(tuple, seen))) == 5
    assert add(cluster.nodes["n2"], "c") == 5


def test_a_pin_waits_for_its_node(start):
    cluster = start(2)
    pin = {"type": "counter", "shard": 7, "node": "n3"}
    done = ctl("--timeout", "1s", "move", "counter:7", "n3", "--pin", node=cluster.any)
    assert done.returncode == 0 and "it goes to n3 when that node joins" in done.stdout
    assert ctl_json("moves", node=cluster.any)["pins"] == [pin]
    for _ in range(2):
        # The pin names a node that is not there; the shard has an owner meanwhile.
        assert cluster.entries()[7][0] in ("n1", "n2")
        cluster.join("n3")
        wait_until(lambda: cluster.entries()[7][0] == "n3", "it is where it is pinned")
        cluster.wait(3)
        left = cluster.nodes.pop("n3")
        left.send(signal.SIGTERM)
        assert left.wait() == 0, left.log()
        cluster.wait(2)
        assert ctl_json("moves", node=cluster.any)["pins"] == [pin]


class Rooms:
    """One busy entity in each shard of a type whose handlers wait until they may go on."""

    def __init__(self, shards):
        self.go_on = threading.Event()
        self.busy = threading.Semaphore(0)
        self.handled = collections.defaultdict(list)  # id -> [(node, number)]
        by_shard = {shardbus.shard_of(f"room-{i}".encode(), shards): f"room-{i}"
                    for i in range(100 * shards)}
        self.names = [by_shard[shard] for shard in range(shards)]
        rooms = self

        @shardbus.host("room", shards=shards)
        class Room:
            def __init__(self, ctx):
                self._ctx = ctx

            def hold(self):
                rooms.busy.release()
                assert rooms.go_on.wait(60)

            def note(self, number):
                rooms.handled[self._ctx.id].append((self._ctx.node, number))

        self._kind = Room

    def host(self, stack, node):
        stack.enter_context(shardbus.Worker(node.address, [self._kind], threads=len(self.names)))

    def occupy(self, stack, bus):
        """Has a handler in each room, which runs until `go_on`; gives their asks."""
        stack.callback(self.go_on.set)
        held = [bus.entity("room", name).ask_future("hold", timeout=60) for name in self.names]
        for _ in self.names:
            assert self.busy.acquire(timeout=20)
        return held


def test_a_move_waits_for_the_handler_that_runs_and_holds_up_no_other_type(start):
    rooms = Rooms(8)
    cluster = start(1, "--handoff-timeout", "60s")
    node = cluster.nodes["n1"]
    with contextlib.ExitStack() as stack:
        bus = stack.enter_context(shardbus.connect(node.address))
        rooms.host(stack, node)
        held = rooms.occupy(stack, bus)
        second = cluster.join("n2")
        rooms.host(stack, second)
        wait_until(lambda: cluster.counts() == {"n1": 128, "n2": 128}, "counters are shared")
        # Asked meanwhile, a node answers, and what is told is kept in its order.
        wait_until(lambda: ctl_json("status", node=node.address)["moves_open"] == 4, "four to move")
        assert cluster.counts("room") == {"n1": 8} and not any(one.done() for one in held)
        for number in range(20):
            for name in rooms.names:
                bus.entity("room", name).tell("note", {"number": number})
        rooms.go_on.set()
        for one in held:
            one.result(20)
        wait_until(lambda: cluster.counts("room") == {"n1": 4, "n2": 4}, "rooms are shared")
        wait_until(lambda: sum(map(len, rooms.handled.values())) == 20 * 8, "all is handled")
        for notes in rooms.handled.values():
            assert [number for _, number in notes] == list(range(20))
        owners = [owner for owner, _ in cluster.entries("room")]
        assert [rooms.handled[name][-1][0] for name in rooms.names] == owners
        # Both nodes know the same owners under the same rights.
        tables = [[shard[:3] for shard in
                   ctl_json("shards", "--type", "room", node=one.address)[0]["shards"]]
                  for one in (node, second)]
        assert tables[0] == tables[1]


def test_a_tenth_of_the_shards_moves_at_a_time_and_no_more(start):
    rooms = Rooms(64)
    cluster = start(1, "--handoff-timeout", "60s", "--builtin-types", "false")
    node = cluster.nodes["n1"]

    def under_way():
        open_moves = len(ctl_json("moves", node=node.address)["open"])
        assert open_moves <= 6
        return open_moves

    with contextlib.ExitStack() as stack:
        bus = stack.enter_context(shardbus.connect(node.address))
        rooms.host(stack, node)
        rooms.occupy(stack, bus)
        rooms.host(stack, cluster.join("n2"))
        # None of them ends while the handlers run, so that no other one begins.
        wait_until(lambda: under_way() == 6, "a tenth of all shards")
        assert cluster.counts("room") == {"n1": 64}
        rooms.go_on.set()
        wait_until(lambda: not under_way() and cluster.counts("room") == {"n1": 32, "n2": 32},
                   "rooms are shared")


# --- nodes that do not answer ------------------------------------------------------------------

def test_a_silent_node_is_named_and_may_be_heard_again(start):
    # Of two, nobody is removed by the one that is left.
    cluster = start(2)
    silent = cluster.nodes["n2"]
    entries = cluster.entries()

    def reachable():
        return [one["reachable"] for one in ctl_json("members", node=cluster.any)]

    silent.send(signal.SIGSTOP)
    try:
        wait_until(lambda: reachable() == [True, False], "it is not heard")
        done = ctl("--timeout", "1s", "status", "n2", node=cluster.any)
        assert done.returncode != 0 and done.stdout == "" and "error" in done.stderr
        # What it had is shown as its own, not as nobody's.
        assert cluster.entries() == entries
    finally:
        silent.send(signal.SIGCONT)
    wait_until(lambda: reachable() == [True, True], "it is heard again")
    cluster.wait(2)
