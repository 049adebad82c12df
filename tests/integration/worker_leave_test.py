"""A node that leaves while it has the only workers of a type: their entities keep their state."""

import contextlib
import pathlib
import signal
import sys
import threading

import pytest

from daemons import SOURCE, Daemon, ctl, ctl_json, free_port
from raw_peer import wait_until

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

COUNT = 40


@shardbus.host("basket", shards=16)
class Basket:
    def __init__(self, ctx):
        self.ctx = ctx
        self.items = 0

    def add(self, amount):
        self.items += amount
        return self.items

    def where(self):
        return self.ctx.node

    def save(self):
        return self.items

    def load(self, state):
        self.items = state


class Cluster:
    """Nodes a, b, ... at addresses that they keep when they are restarted."""

    def __init__(self, stack, names, *options):
        self._stack = stack
        self._options = options
        self.addresses = {name: f"tcp://127.0.0.1:{free_port()}" for name in names}
        self.nodes = {}
        for name in names:
            self.start(name)

    def start(self, name):
        seeds = ",".join(self.addresses.values())
        daemon = Daemon("--name", name, "--seeds", seeds, *self._options,
                        listen=self.addresses[name])
        self.nodes[name] = self._stack.enter_context(daemon).ready()

    def wait_members(self, via):
        done = ctl("--timeout", "20s", "wait", "--members", str(len(self.addresses)),
                   node=self.addresses[via])
        assert done.returncode == 0, done.stderr

    def leave(self, name):
        self.nodes[name].send(signal.SIGTERM)
        return self.nodes[name].wait()


@pytest.fixture(name="stack")
def fixture_stack():
    with contextlib.ExitStack() as stack:
        yield stack


class Caller(threading.Thread):
    """Adds 1 to one basket again and again; whatever happens, every answer is the next number."""

    def __init__(self, address):
        super().__init__()
        self._address = address
        self._ends = threading.Event()
        self.wrong = []
        self.asked = 0

    def run(self):
        with shardbus.connect(self._address) as bus:
            basket = bus.entity("basket", "busy")
            while not self._ends.is_set() and not self.wrong:
                self.asked += 1
                try:
                    answer = basket.ask("add", {"amount": 1}, timeout=20)
                except shardbus.ShardbusError as error:
                    answer = repr(error)
                if answer != self.asked:
                    self.wrong.append((self.asked, answer))

    def end(self):
        self._ends.set()
        self.join()
        assert not self.wrong


def test_three_nodes_restart_one_by_one_under_one_worker_and_no_count_is_lost(stack):
    cluster = Cluster(stack, "abc")
    cluster.wait_members("a")
    worker = stack.enter_context(shardbus.Worker(list(cluster.addresses.values()), [Basket]))
    total = 0
    visited = set()
    for _ in range(2):
        # Whichever node the worker is at is restarted in its turn, so it has to move.
        for name in "abc":
            other = cluster.addresses["b" if name == "a" else "a"]
            with shardbus.connect(other) as bus:
                baskets = [bus.entity("basket", f"b{number}") for number in range(COUNT)]
                total += 1
                assert [basket.ask("add", {"amount": 1}, timeout=20)
                        for basket in baskets] == [total] * COUNT
                visited.add(baskets[0].ask("where"))
                assert cluster.leave(name) == 0, cluster.nodes[name].log()
                total += 1
                assert [basket.ask("add", {"amount": 1}, timeout=20)
                        for basket in baskets] == [total] * COUNT
                assert baskets[0].ask("where") != name
            cluster.start(name)
            cluster.wait_members(name)
    assert len(visited) > 1
    for name in "abc":
        status = ctl_json("status", node=cluster.addresses[name])
        assert status["counters"].get("states_lost", 0) == 0
    assert worker.link.is_alive()


def test_what_is_asked_meanwhile_waits_and_is_answered_once(stack):
    cluster = Cluster(stack, "ab")
    cluster.wait_members("a")
    with shardbus.Worker([cluster.addresses["a"]], [Basket]) as worker:
        # The worker that follows is at b, so what is asked in between has nobody to handle it.
        caller = Caller(cluster.addresses["b"])
        caller.start()
        wait_until(lambda: caller.asked > 20, "the caller is at work")
        cluster.nodes["a"].send(signal.SIGTERM)
        wait_until(lambda: worker.link.session.state != "open", "the worker is sent away")
        with shardbus.Worker([cluster.addresses["b"]], [Basket]):
            assert cluster.nodes["a"].wait() == 0, cluster.nodes["a"].log()
            before = caller.asked
            wait_until(lambda: caller.asked > before + 20 or caller.wrong, "it is answered again")
            caller.end()


def lost_line(log):
    return [line for line in log.splitlines() if "worker.states_lost" in line]


def leave_with_nobody_to_go_to(stack, *options):
    """Gives how node a ended, and what it said of the states; its worker knows no other node."""
    cluster = Cluster(stack, "ab", *options)
    cluster.wait_members("a")
    with shardbus.Worker([cluster.addresses["a"]], [Basket]), \
            shardbus.connect(cluster.addresses["b"]) as bus:
        for number in range(COUNT):
            assert bus.entity("basket", f"b{number}").ask("add", {"amount": 1}) == 1
        code = cluster.leave("a")
    return code, cluster.nodes["a"].log()


def test_states_that_nobody_takes_in_time_are_given_up_with_a_word(stack):
    code, log = leave_with_nobody_to_go_to(stack, "--handoff-timeout", "100ms")
    assert code == 0, log
    assert len(lost_line(log)) == 1, log
    assert "type=basket" in lost_line(log)[0] and f"entities={COUNT}" in lost_line(log)[0]
    assert "shards=16" in lost_line(log)[0]


def test_a_leave_that_ends_earlier_says_it_too(stack):
    code, log = leave_with_nobody_to_go_to(stack, "--leave-timeout", "1s")
    assert code == 6, log
    assert len(lost_line(log)) == 1, log
    assert "type=basket" in lost_line(log)[0] and f"entities={COUNT}" in lost_line(log)[0]
