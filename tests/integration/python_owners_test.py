"""The Python client with route="owners" against real brokers that come, go and die under it."""

import asyncio
import contextlib
import pathlib
import signal
import sys
import threading

import pytest

from daemons import SOURCE, Daemon, ctl, ctl_json
from raw_peer import wait_until

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

ENTITIES = 40
# How an ask may end that went to a node in its last moments.
ENDED = (shardbus.Stopped, shardbus.UnknownOutcome)


def wait_members(node, count):
    done = ctl("--timeout", "20s", "wait", "--members", str(count), node=node.address)
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="nodes")
def fixture_nodes():
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Daemon("--name", "n1")).ready()]
        for name in ("n2", "n3"):
            seeds = ("--seeds", nodes[0].address)
            nodes.append(stack.enter_context(Daemon("--name", name, *seeds)).ready())
        wait_members(nodes[0], 3)
        yield nodes


class Load(threading.Thread):
    """Adds 1 to many counters without a pause; every reply must be the number of adds so far.

    A node that stops may take along what the client sent to it in its last moments. So in a round
    in which a session ended, less may have arrived than was sent, never more.
    """

    def __init__(self, bus):
        super().__init__(daemon=True)
        self._losses = bus.link.session.counters
        self._counters = [bus.entity("counter", f"c{n}") for n in range(ENTITIES)]
        self._over = threading.Event()
        self._error = None
        self._totals = [0] * ENTITIES
        self._lost_before = 0
        self.rounds = self.broken_rounds = 0
        self.start()

    def run(self):
        try:
            while not self._over.is_set():
                self._round()
                self.rounds += 1
        except BaseException as error:
            self._error = error

    def _round(self):
        for counter in self._counters:
            counter.tell("add", {"amount": 1})
        asks = [counter.ask_future("add", {"amount": 1}, timeout=20) for counter in self._counters]
        for counter in self._counters:
            counter.tell("add", {"amount": 1})
        errors = [ask.exception(30) for ask in asks]
        lost, before = self._losses["ways_lost"], self._lost_before
        self._lost_before = lost
        if lost == before and not any(errors):
            assert [ask.result() for ask in asks] == [total + 2 for total in self._totals]
            self._totals = [total + 3 for total in self._totals]
        else:
            self._broken_round(asks, errors)

    def _broken_round(self, asks, errors):
        self.broken_rounds += 1
        for error in errors:
            assert error is None or isinstance(error, ENDED), error
        for n, ask in enumerate(asks):
            arrived = self._counters[n].ask("get")
            least = self._totals[n] - 1  # the last tell of the round before
            assert least <= arrived <= self._totals[n] + 3
            assert errors[n] or least < ask.result() <= arrived
            self._totals[n] = arrived

    def go_on(self, rounds=20):
        want = self.rounds + rounds
        wait_until(lambda: self._error or self.rounds >= want, "the load goes on")
        if self._error:
            raise self._error

    def end(self):
        self._over.set()
        self.join(30)
        assert self._error is None and not self.is_alive()
        assert [c.ask("get") for c in self._counters] == self._totals


def test_order_holds_and_nothing_is_lost_while_nodes_join_and_leave(nodes):
    with shardbus.connect(nodes[1].address, route="owners") as bus:
        load = Load(bus)
        load.go_on()
        client = bus.link.session
        assert len(client.sessions) == 3
        with Daemon("--name", "n4", "--seeds", nodes[0].address) as fourth:
            fourth.ready()
            wait_until(lambda: len(client.sessions) == 4, "a session with the fourth node")
            load.go_on()
            assert load.broken_rounds == 0 and client.counters["fences_sent"] > 0
            fourth.send(signal.SIGTERM)
            assert fourth.wait() == 0, fourth.log()
        load.go_on()
        status = ctl_json("status", node=nodes[1].address)
        assert status["coordinator"] == "n1", status
        nodes[0].send(signal.SIGTERM)  # the coordinator
        assert nodes[0].wait() == 0, nodes[0].log()
        load.go_on()
        load.end()
        assert client.counters["ways_lost"] >= 2


def test_after_a_kill_every_entity_answers_again_and_no_ask_hangs(nodes):
    with shardbus.connect(nodes[0].address, route="owners") as bus:
        counters = [bus.entity("counter", f"c{n}") for n in range(ENTITIES)]
        for counter in counters:
            assert counter.ask("add", {"amount": 1}) == 1
        stop, ended = threading.Event(), []

        def call():
            while not stop.is_set():
                ended.extend(type(c.ask_future("get", timeout=10).exception(20)) for c in counters)

        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        nodes[0].send(signal.SIGKILL)  # the one that the client greeted first
        nodes[0].wait()

        def answer(counter):
            with contextlib.suppress(shardbus.UnknownOutcome, shardbus.StaleOwner):
                return counter.ask("get", timeout=10) is not None

        for counter in counters:
            wait_until(lambda counter=counter: answer(counter), "an answer")
        stop.set()
        caller.join(30)
        assert not caller.is_alive()
        assert set(ended) <= {type(None), shardbus.UnknownOutcome, shardbus.StaleOwner}


def test_asyncio(nodes):
    async def use():
        async with await shardbus.connect_async([node.address for node in nodes],
                                                route="owners") as bus:
            asks = [bus.entity("kv", f"k{n}").ask("set", n) for n in range(ENTITIES)]
            await asyncio.gather(*asks)
            asks = [bus.entity("kv", f"k{n}").ask("get") for n in range(ENTITIES)]
            assert await asyncio.gather(*asks) == list(range(ENTITIES))
            assert len(bus.link.session.sessions) == 3

    asyncio.run(use())
