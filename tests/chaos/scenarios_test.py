"""Faults that users of such systems met, on real nodes whose entities keep a witness."""

import collections
import contextlib
import itertools
import signal
import threading
import time

import pytest
import shardbus

import witness
from cluster import FAILURE_TIMEOUT, Cluster, pause
from daemons import SLOWER
from driver import Client
from ledger_worker import SHARDS, TYPE
from raw_peer import resident, wait_until
from shardbus import shard_of

MIB = 1 << 20


def cluster_of(size, tmp_path, *flags, **more):
    return Cluster(size, tmp_path, flags=flags, **more)


def one_id_per_shard(shards=SHARDS):
    """Gives ids, one for each shard, in the order of the shards."""
    found = {}
    for number in itertools.count():
        name = f"probe-{number}"
        found.setdefault(shard_of(name.encode(), shards), name)
        if len(found) == shards:
            return [found[shard] for shard in range(shards)]


def assert_answers_everywhere(cluster, patience=10):
    """The liveness probe: one ask per shard through every node is answered in time."""
    for member in cluster.alive:
        with shardbus.connect(member.address) as bus:
            def answered(bus=bus):
                asks = [bus.entity(TYPE, name).ask_future("peek", timeout=patience)
                        for name in one_id_per_shard()]
                return not any(ask.exception() for ask in asks)

            wait_until(answered, f"every shard answers through {member.name}", patience)


def assert_single_owner(cluster):
    notes, _ = witness.read(cluster.witness)
    lives = witness.lives_of(notes)
    found = list(witness.overlaps(lives))
    assert not found, "\n".join(map(str, found))
    return lives


def hosted_by(cluster, member, of):
    """Waits until the nodes in `of`, and only these, own shards of the ledger."""
    wanted = {one.name for one in of}

    def spread():
        return (set(cluster.owners(TYPE, member).values()) == wanted
                and cluster.status(member)["moves_open"] == 0)

    wait_until(spread, f"shards at {sorted(wanted)}")


# --- H010: a second node joins -----------------------------------------------------------------

def test_h010_a_second_node_takes_over_rooms_that_were_stopped_before(tmp_path):
    rooms = [f"room-{number}" for number in range(1, 101)]
    with cluster_of(2, tmp_path, start=False) as cluster:
        first, second = cluster.members
        first.start()
        with shardbus.connect(first.address) as bus:
            for room in rooms:
                bus.entity(TYPE, room).ask("add", {"sender": "before", "seq": 1})
                bus.entity("counter", room).ask("add", {"amount": 1})
            second.start()
            hosted_by(cluster, first, cluster.members)
            with shardbus.connect(second.address) as other:
                for number, room in enumerate(rooms):
                    caller = (bus, other)[number % 2]
                    answer = caller.entity(TYPE, room).ask("add", {"sender": "after", "seq": 2})
                    assert answer[3] == 2, f"{room} lost its count"
                    assert caller.entity("counter", room).ask("add", {"amount": 1}) == 2
        lives = assert_single_owner(cluster)
        moved = [room for room in rooms if len(lives[room]) == 2]
        assert len(moved) in range(20, 81) and all(len(lives[room]) <= 2 for room in rooms)
        for room in moved:
            old, new = lives[room]
            assert (old.node, new.node) == ("n1", "n2") and old.stopped < new.start
        # A node counts the entities that it runs itself: the counters.
        assert sum(cluster.status(member)["entities"] for member in cluster.members) == len(rooms)


# --- H096: a restart on the same address -------------------------------------------------------

def restart(cluster, member, delay, half_way_out=False):
    """Kills a node and starts it again after a while; gives how long it takes to be up again."""
    old = cluster.view(cluster[1])[member.name][2]
    if half_way_out:
        member.send(signal.SIGTERM, worker=False)
        member.daemon.wait_for_log("leaving the cluster")
    member.kill()
    pause(delay)
    begin = time.monotonic()
    member.start(wait=False)

    def up():
        row = (cluster.view(cluster[1]) or {}).get(member.name)
        return row and row[0] == "up" and row[1] and row[2] > old

    wait_until(up, f"{member.name} is up again")
    took = time.monotonic() - begin
    member.start()
    cluster.wait_whole()  # which also means: one row of that name, the same in all views
    return took


@pytest.mark.parametrize("half_way_out", [False, True])
def test_h096_a_node_killed_and_started_again_is_back_within_two_failure_timeouts(tmp_path,
                                                                                  half_way_out):
    delays = [0, 0.5, 1, 2] * (1 if half_way_out else 5)
    with cluster_of(3, tmp_path) as cluster:
        took = [restart(cluster, cluster[2], delay * FAILURE_TIMEOUT, half_way_out)
                for delay in delays]
        print("seconds to be up again:", [round(one, 2) for one in took])
        assert max(took) < 2 * FAILURE_TIMEOUT, list(zip(delays, took))
        hosted_by(cluster, cluster[1], cluster.members)
        assert_answers_everywhere(cluster)


# --- H042: a type that nobody hosts ------------------------------------------------------------

BUFFER = 500


class Flood:
    """Asks one entity that has no host, 5000 times a second with 1 KB each, and sorts the ends."""

    def __init__(self, bus, name="x", every=0.02):
        self._entity = bus.entity(TYPE, name)
        self._every = every
        self.ends = collections.Counter()
        self.refused_after = 0.0

    def burst(self, count=100):
        asked = time.monotonic()

        def ended(future):
            error = future.exception()
            self.ends[type(error).__name__] += 1
            if isinstance(error, shardbus.Overloaded):
                self.refused_after = max(self.refused_after, time.monotonic() - asked)

        for _ in range(count):
            self._entity.ask_future("peek", b"x" * 1000, timeout=60).add_done_callback(ended)
        return count

    def run(self, seconds):
        """Gives how many it asked."""
        end, sent = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            sent += self.burst()
            pause(self._every)
        return sent


def test_h042_what_waits_for_a_host_is_bounded_and_the_rest_is_told_at_once(tmp_path):
    flags = ("--buffered-messages", str(BUFFER))
    with cluster_of(2, tmp_path, *flags, start=False) as cluster:
        for member in cluster.members:
            member.start(worker=False)
        node = cluster[1]
        with shardbus.connect(node.address) as bus, shardbus.connect(node.address) as other:
            flood = Flood(bus)
            sent = flood.run(2.5)  # now the limit is reached
            memory = resident(node.daemon.process.pid)
            most = 0
            for _ in range(8):
                sent += flood.run(0.5)
                most = max(most, cluster.status(node)["counters"]["held_messages"])
                assert other.entity("echo", "beside").ask("echo", 7, timeout=2) == 7
            assert most == BUFFER
            assert resident(node.daemon.process.pid) - memory < 8 * MIB
            wait_until(lambda: flood.ends.total() == sent, "every ask has ended")
            print(sent, dict(flood.ends), round(flood.refused_after, 3))
            assert set(flood.ends) == {"Overloaded", "NoSuchType"}
            assert flood.ends["Overloaded"] > flood.ends["NoSuchType"] > BUFFER
            assert cluster.status(node)["counters"]["held_messages"] == 0


def test_h042_what_was_buffered_is_handled_in_order_when_a_host_comes(tmp_path):
    flags = ("--buffered-messages", str(BUFFER))
    with cluster_of(1, tmp_path, *flags, start=False) as cluster:
        node = cluster[1].start(worker=False)
        with shardbus.connect(node.address) as bus:
            waiting = bus.entity(TYPE, "order-9")
            asks = [waiting.ask_future("add", {"sender": "s", "seq": seq}, timeout=60)
                    for seq in range(2 * BUFFER)]
            wait_until(lambda: sum(ask.done() for ask in asks) == BUFFER, "half is refused", 2)
            node.start_worker()
            errors = [ask.exception(20) for ask in asks]
        assert errors[:BUFFER] == [None] * BUFFER
        assert {type(error) for error in errors[BUFFER:]} == {shardbus.Overloaded}
        notes, _ = witness.read(cluster.witness)
        assert [note.seq for note in notes if note.what == "handled"] == list(range(BUFFER))


# --- H002: queued commands at a move -----------------------------------------------------------

def owner_of(cluster, name, member):
    owner = cluster.owners(TYPE, member)[shard_of(name.encode(), SHARDS)]
    return next(one for one in cluster.members if one.name == owner)


def test_h002_what_is_queued_when_a_shard_moves_is_handled_once_and_in_order(tmp_path):
    count, name = 100, "order-311"
    with cluster_of(2, tmp_path, "--leave-timeout", "60s") as cluster:
        hosted_by(cluster, cluster[1], cluster.members)
        owner = owner_of(cluster, name, cluster[1])
        other = next(member for member in cluster.members if member is not owner)
        with shardbus.connect(other.address) as bus:
            asks = [bus.entity(TYPE, name).ask_future(
                "add", {"sender": "burst", "seq": seq, "busy": 0.1}, timeout=60)
                for seq in range(1, count + 1)]
            asks[4].result(20)
            assert owner.leave() == 0
            answers = [ask.result(60) for ask in asks]
        # The count is the entity's own state: it moved, and each command found the one before it.
        assert [answer[3] for answer in answers] == list(range(1, count + 1))
        lives = assert_single_owner(cluster)[name]
        assert sum(life.handled for life in lives) == count
        notes, _ = witness.read(cluster.witness)
        assert [note.seq for note in notes if note.what == "handled"] == list(range(1, count + 1))
        for old, new in itertools.pairwise(lives):
            assert old.stopped < new.start


# --- H018: an entity that does not stop --------------------------------------------------------

def test_h018_an_entity_that_does_not_stop_holds_up_nobody_beyond_the_limit(tmp_path):
    limit = 2
    flags = ("--handoff-timeout", f"{limit}s", "--leave-timeout", "30s")
    with cluster_of(2, tmp_path, *flags) as cluster:
        hosted_by(cluster, cluster[1], cluster.members)
        stubborn = "stubborn-1"
        owner = owner_of(cluster, stubborn, cluster[1])
        other = next(member for member in cluster.members if member is not owner)
        shard = shard_of(stubborn.encode(), SHARDS)
        names = (f"echo-{number}" for number in itertools.count())
        same = list(itertools.islice((name for name in names
                                      if shard_of(name.encode(), SHARDS) == shard), 20))
        with shardbus.connect(other.address) as bus:
            for name in same:
                bus.entity(TYPE, name).ask("add", {"sender": "s", "seq": 1})
            hanging = bus.entity(TYPE, stubborn).ask_future("hang", timeout=60)
            wait_until(lambda: any(note.sender == "hang"
                                   for note in witness.read(cluster.witness)[0]), "it hangs")
            begin = time.monotonic()
            owner.daemon.send(signal.SIGTERM)
            owner.daemon.wait_for_log("leaving the cluster")
            for name in same:
                wait_until(lambda name=name: bus.entity(TYPE, name).ask("peek", timeout=30)[0]
                           == other.name, f"{name} answers elsewhere")
            took = time.monotonic() - begin
            # They had saved their state in time, and did not pay for the one that would not end.
            assert [bus.entity(TYPE, name).ask("peek")[1] for name in same] == [1] * len(same)
            print(f"20 entities answer elsewhere after {took:.2f} s, limit {limit} s")
            assert took < limit + 2
            with pytest.raises(shardbus.UnknownOutcome):
                hanging.result(20)
            assert bus.entity(TYPE, stubborn).ask("peek", timeout=10)[0] == other.name
            assert owner.daemon.wait() == 0
        owner.daemon.wait_for_log(f"type={TYPE} shard={shard} saved=20 running={stubborn}")
        assert owner.daemon.log().count("worker.forced_stop") == 1
        assert_single_owner(cluster)


# --- a worker and the loss of its node ---------------------------------------------------------

def burst(bus, name, count, busy):
    """Queues slow commands for one entity; returns once the fifth was handled."""
    asks = [bus.entity(TYPE, name).ask_future("add", {"sender": "burst", "seq": seq, "busy": busy},
                                              timeout=60) for seq in range(1, count + 1)]
    asks[4].result(20)
    return asks


def answered_elsewhere(bus, name, owner):
    """Waits until another node than the owner answers for the entity."""
    def elsewhere():
        with contextlib.suppress(shardbus.UnknownOutcome, shardbus.StaleOwner):
            call = {"sender": "after", "seq": time.monotonic_ns()}
            return bus.entity(TYPE, name).ask("add", call)[0] != owner.name

    wait_until(elsewhere, "it answers elsewhere")


def test_a_worker_drops_its_queue_with_its_node(tmp_path):
    with cluster_of(3, tmp_path) as cluster:
        hosted_by(cluster, cluster[1], cluster.members)
        owner = owner_of(cluster, "order-311", cluster[1])
        other = next(member for member in cluster.members if member is not owner)
        with shardbus.connect(other.address) as bus:
            asks = burst(bus, "order-311", 100, 0.05)
            owner.kill(worker=False)
            errors = [ask.exception(20) for ask in asks]
            assert {type(error) for error in errors if error} == {shardbus.UnknownOutcome}
            answered_elsewhere(bus, "order-311", owner)
            # The old worker begins a new session, in which it would have gone on.
            owner.start()
            cluster.wait_whole()
        lives = assert_single_owner(cluster)["order-311"]
        assert sum(life.handled for life in lives if life.node == owner.name) < 20


def test_a_worker_begins_nothing_when_others_may_have_its_entities(tmp_path):
    with cluster_of(3, tmp_path) as cluster:
        hosted_by(cluster, cluster[1], cluster.members)
        owner = owner_of(cluster, "order-311", cluster[1])
        other = next(member for member in cluster.members if member is not owner)
        with shardbus.connect(other.address) as bus:
            burst(bus, "order-311", 200, 0.05)
            owner.send(signal.SIGSTOP, worker=False)  # the node alone
            answered_elsewhere(bus, "order-311", owner)
            pause(2 * FAILURE_TIMEOUT)
            owner.send(signal.SIGCONT)
            cluster.wait_whole()
        lives = assert_single_owner(cluster)["order-311"]
        assert sum(life.handled for life in lives if life.node == owner.name) < 100


def test_h091_a_machine_that_stood_still_goes_on_with_nothing(tmp_path):
    with cluster_of(3, tmp_path) as cluster:
        hosted_by(cluster, cluster[1], cluster.members)
        owner = owner_of(cluster, "order-311", cluster[1])
        other = next(member for member in cluster.members if member is not owner)
        with shardbus.connect(other.address) as bus:
            burst(bus, "order-311", 100, 0.05)
            owner.send(signal.SIGSTOP)
            frozen = time.monotonic()
            answered_elsewhere(bus, "order-311", owner)
            pause(max(0, 3 * FAILURE_TIMEOUT - (time.monotonic() - frozen)))
            going_on = time.monotonic_ns()
            owner.send(signal.SIGCONT)
            owner.daemon.wait_for_log("failure.self_paused")
            cluster.wait_whole()
        late = [note for note in witness.read(cluster.witness)[0] if note.what == "handled"
                and note.pid == owner.worker.pid and note.sender == "burst"
                and note.ns > going_on + 500_000_000]
        assert not late, late[:3]


# --- a client that stands still ----------------------------------------------------------------

def leave_under_load(cluster, bus, names):
    """Lets a node leave; gives the seconds that it took, and the longest ask meanwhile."""
    longest, over = [0.0], threading.Event()

    def ask():
        while not over.is_set():
            begin = time.monotonic()
            for future in [bus.entity("counter", name).ask_future("add") for name in names]:
                future.result(20)
            longest[0] = max(longest[0], time.monotonic() - begin)

    asking = threading.Thread(target=ask)
    asking.start()
    begin = time.monotonic()
    try:
        code = cluster[3].leave()
        took = time.monotonic() - begin
    finally:
        over.set()
        asking.join()
    assert code == 0
    cluster[3].start()
    cluster.wait_whole()
    return took, longest[0]


def test_a_client_that_stands_still_does_not_delay_a_move(tmp_path):
    with cluster_of(3, tmp_path) as cluster, contextlib.ExitStack() as stack:
        names = [f"c{number}" for number in range(100)]
        bus = stack.enter_context(shardbus.connect(cluster[1].address))
        client = Client("frozen", [member.address for member in cluster.members], tmp_path,
                        "owners")
        stack.callback(client.close)
        figures = {}
        for frozen in (False, True, False, True):
            client.tell("go", "1")
            client.wait("go", 10)
            wait_until(lambda: client.stat[1] > 50, "the client sends")
            client.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)
            figures.setdefault(frozen, []).append(leave_under_load(cluster, bus, names))
            client.process.send_signal(signal.SIGCONT)
        for frozen, measured in figures.items():
            print("frozen" if frozen else "running", "client: seconds to leave, longest ask:",
                  [(round(took, 3), round(ask, 3)) for took, ask in measured])
        assert max(took for took, _ in figures[True]) < 1.5 * SLOWER, figures
        assert max(ask for _, ask in figures[True]) < 1.0 * SLOWER, figures
        # Whoever waited for it would do so until its session ends, which is seconds later.
        for figure in (0, 1):
            longest = {frozen: max(one[figure] for one in measured)
                       for frozen, measured in figures.items()}
            assert longest[True] < longest[False] + 1.5, figures
