"""Worker against a node that speaks the protocol."""

from __future__ import annotations

import contextlib
import threading
import time

import msgpack
import pytest
import shardbus
from shardbus import clock
from fake_broker import ASK, CREDIT, GOODBYE, TELL, FakeBroker, shard_of

SHARDS = 16


@shardbus.host("cart", shards=SHARDS)
class Cart:
    made = 0

    def __init__(self, ctx):
        type(self).made += 1
        self.ctx = ctx
        self.items = {}

    def add(self, name, amount=1):
        self.items[name] = self.items.get(name, 0) + amount
        return sum(self.items.values())

    def list(self):
        return self.items

    def first(self, value):
        return value

    def who(self):
        return [self.ctx.type, self.ctx.id, self.ctx.node, self.ctx.sender]

    def burn(self):
        raise RuntimeError("the kitchen is on fire")

    def refuse(self):
        raise shardbus.Refusal(shardbus.NotAuthorised("not you"))

    def forward(self):
        self.items["forwarded"] = 1
        raise shardbus.Overloaded("the other entity's mailbox")  # as a nested ask does

    def grow(self, size):
        self.items["z" * size] = 1

    def large(self, size):
        return "x" * size

    def unpackable(self):
        return object()

    async def slowly(self, value):
        return value

    def count_of(self, counter):
        return self.ctx.entity("counter", counter).ask("add", {"amount": 2})

    def save(self):
        return self.items

    def load(self, state):
        self.items = state

    def _secret(self):
        return "never"


class Gate:
    """Lets a handler wait until the test says so."""

    entered = threading.Event()
    go = threading.Event()
    running = 0
    most = 0
    ports = []
    order = []


@shardbus.host("gate", shards=SHARDS)
class GateEntity:
    def __init__(self, ctx):
        self.ctx = ctx

    def wait(self):
        Gate.running += 1
        Gate.most = max(Gate.most, Gate.running)
        Gate.entered.set()
        assert Gate.go.wait(10)
        Gate.running -= 1

    def note(self, value):
        Gate.order.append(value)

    def later(self, reply: shardbus.ReplyPort, value):
        Gate.ports.append((reply, value))

    def forget(self, reply: shardbus.ReplyPort):
        pass

    def pass_on(self, reply: shardbus.ReplyPort, to):
        self.ctx.entity("gate", to).tell("answer_for", {"address": reply.address})

    def answer_for(self, address):
        self.ctx.port(address).send(f"from {self.ctx.id}")


@shardbus.host("stubborn", shards=SHARDS)
class Stubborn(GateEntity):
    def save(self):
        return f"state of {self.ctx.id}"


@pytest.fixture(autouse=True)
def reset():
    Gate.entered.clear()
    Gate.go.clear()
    Gate.running = Gate.most = 0
    Gate.ports.clear()
    Gate.order.clear()
    Cart.made = 0


@pytest.fixture(name="broker")
def fixture_broker():
    with FakeBroker() as broker:
        yield broker


@pytest.fixture(name="worker")
def fixture_worker(broker):
    with shardbus.Worker(broker.address, [Cart, GateEntity]) as worker:
        yield worker
        Gate.go.set()


@pytest.fixture(name="bus")
def fixture_bus(broker, worker):
    assert worker.link.is_alive()
    with shardbus.connect(broker.address) as bus:
        yield bus


def test_greets_with_its_types_and_credit(broker, worker):
    assert worker.link.is_alive()
    (hello,) = broker.greetings
    assert hello["role"] == "worker"
    assert hello["types"] == [["cart", SHARDS], ["gate", SHARDS]]
    assert hello["credit"] == [256, 4 << 20]


def test_methods_get_the_payload_as_arguments(bus):
    cart = bus.entity("cart", "c1")
    assert cart.ask("add", {"name": "tea"}) == 1
    assert cart.ask("add", {"name": "tea", "amount": 4}) == 5
    cart.tell("add", {"name": "cup"})
    assert cart.ask("list") == {"tea": 5, "cup": 1}
    assert cart.ask("first", [1, 2]) == [1, 2]
    assert cart.ask("slowly", 7) == 7
    assert bus.entity("cart", "c2").ask("list") == {}
    assert Cart.made == 2


def test_context(bus):
    kind, name, node, sender = bus.entity("cart", "c1").ask("who")
    assert (kind, name, node) == ("cart", "c1", "node-a")
    assert sender == 3238988543385071


def test_failures_have_their_codes(bus):
    cart = bus.entity("cart", "c1")
    with pytest.raises(shardbus.HandlerFailed, match="RuntimeError: the kitchen is on fire"):
        cart.ask("burn")
    with pytest.raises(shardbus.NotAuthorised, match="not you"):
        cart.ask("refuse")
    for method in ("fly", "_secret", "save", "load", "made", "__init__"):
        with pytest.raises(shardbus.NoSuchMethod):
            cart.ask(method)
    with pytest.raises(shardbus.DecodeFailed, match="missing a required argument"):
        cart.ask("add")
    with pytest.raises(shardbus.DecodeFailed):
        cart.ask("add", {"name": "tea", "colour": 1})
    assert cart.ask("add", {"name": "tea"}) == 1


def test_an_error_of_a_nested_call_says_nothing_of_the_call_itself(bus):
    cart = bus.entity("cart", "c1")
    with pytest.raises(shardbus.HandlerFailed, match="the other entity's mailbox") as caught:
        cart.ask("forward")
    assert caught.value.may_have_happened
    assert cart.ask("list") == {"forwarded": 1}


def test_an_answer_that_cannot_be_packed_is_an_answer_all_the_same(bus):
    with pytest.raises(shardbus.HandlerFailed, match="TypeError"):
        bus.entity("cart", "c1").ask("unpackable")


def test_a_reply_that_is_too_large_is_an_error_and_harms_nobody_else(bus):
    cart = bus.entity("cart", "c1")
    assert cart.ask("add", {"name": "tea"}) == 1
    for size in (1_044_480, 1_100_000, 3_000_000):
        with pytest.raises(shardbus.TooLarge):
            cart.ask("large", size)
    assert cart.ask("add", {"name": "tea"}) == 2


def test_handlers_may_ask_other_entities(bus):
    assert bus.entity("cart", "c1").ask("count_of", {"counter": "x"}) == 2


def test_one_message_at_a_time_per_entity_in_order(bus):
    gate = bus.entity("gate", "g")
    waiting = [gate.ask_future("wait") for _ in range(3)]
    for value in range(50):
        gate.tell("note", value)
    last = gate.ask_future("note", "end")
    assert Gate.entered.wait(10)
    Gate.go.set()
    for future in (*waiting, last):
        future.result(10)
    assert Gate.most == 1
    assert Gate.order == [*range(50), "end"]


def test_entities_run_side_by_side(bus):
    blocked = bus.entity("gate", "a").ask_future("wait")
    assert Gate.entered.wait(10)
    assert bus.entity("cart", "b").ask("add", {"name": "tea"}) == 1
    Gate.go.set()
    blocked.result(10)


def test_a_reply_port_answers_later_and_once(bus):
    future = bus.entity("gate", "g").ask_future("later", {"value": 5})
    bus.entity("gate", "g").ask("note", 1)
    port, value = Gate.ports[0]
    assert port.valid
    port.send(value + 1)
    port.send("again")
    assert future.result(10) == 6
    assert not port.valid


def test_a_forgotten_reply_port_says_no_reply(bus):
    with pytest.raises(shardbus.NoReply):
        bus.entity("gate", "g").ask("forget")


def test_a_reply_port_may_be_passed_on(bus):
    assert bus.entity("gate", "a").ask("pass_on", {"to": "b"}) == "from b"


def test_credit_is_given_back(broker):
    with shardbus.Worker(broker.address, [Cart], window=(4, 10000)):
        with shardbus.connect(broker.address) as bus:
            cart = bus.entity("cart", "c")
            for number in range(40):
                assert cart.ask("add", {"name": "tea"}) == number + 1
    assert broker.seen[CREDIT] >= 40
    assert broker.seen["worker has no credit"] == 0


def test_a_shard_moves_with_its_state(broker, bus):
    cart = bus.entity("cart", "c1")
    cart.ask("add", {"name": "tea"})
    other = bus.entity("cart", "elsewhere-2")
    other.ask("add", {"name": "cup"})
    shard = shard_of("c1", SHARDS)
    assert shard != shard_of("elsewhere-2", SHARDS)
    broker.release("cart", shard, SHARDS)
    broker.wait_until(lambda: ("cart", shard) in broker.released)
    assert list(broker.released["cart", shard]) == [b"c1"]
    future = cart.ask_future("list")
    broker.restore("cart", shard)
    assert future.result(10) == {"tea": 1}
    assert Cart.made == 3


def test_release_waits_for_what_was_received(broker, bus):
    gate = bus.entity("gate", "g")
    blocked = gate.ask_future("wait")
    assert Gate.entered.wait(10)
    shard = shard_of("g", SHARDS)
    broker.release("gate", shard, SHARDS)
    assert ("gate", shard) not in broker.released
    Gate.go.set()
    blocked.result(10)
    broker.wait_until(lambda: ("gate", shard) in broker.released)
    assert broker.released["gate", shard] == {}  # it has no save()


def test_states_larger_than_a_frame_go_in_parts(broker, bus):
    same_shard = [name for name in (f"big-{n}" for n in range(200))
                  if shard_of(name, SHARDS) == 3][:4]
    assert len(same_shard) == 4
    for name in same_shard:
        bus.entity("cart", name).ask("add", {"name": "x" * 400_000})
    broker.release("cart", 3, SHARDS)
    broker.wait_until(lambda: len(broker.released.get(("cart", 3), {})) == 4)


def test_a_state_that_is_too_large_stays_behind_alone(broker, bus):
    same_shard = [name for name in (f"big-{n}" for n in range(200))
                  if shard_of(name, SHARDS) == 3][:3]
    for name, size in zip(same_shard, (10, 1_044_480, 1_200_000)):
        bus.entity("cart", name).ask("add", {"name": "x" * size if size == 10 else "y"})
        if size > 10:
            bus.entity("cart", name).ask("grow", size)
    broker.release("cart", 3, SHARDS)
    broker.wait_until(lambda: ("cart", 3) in broker.released)
    assert list(broker.released["cart", 3]) == [same_shard[0].encode()]


def test_a_lost_session_drops_the_entities(broker, bus, worker):
    cart = bus.entity("cart", "c1")
    assert cart.ask("add", {"name": "tea"}) == 1
    broker.forget_sessions()
    worker.entity("echo", "e").tell("any")  # makes the worker notice
    bus.entity("echo", "e").tell("any")
    broker.wait_until(lambda: broker.welcomed >= 4)
    assert cart.ask("add", {"name": "tea"}) == 1


def test_a_lost_session_drops_what_was_queued_behind_a_handler(broker):
    worker = shardbus.Worker(broker.address, [GateEntity]).start()
    with shardbus.connect(broker.address) as bus:
        gate = bus.entity("gate", "g")
        gate.tell("wait")
        assert Gate.entered.wait(10)
        gate.tell("note", "old")
        assert bus.entity("gate", "other").ask("note", "other") is None  # all of that has come
        broker.forget_sessions()
        worker.entity("echo", "e").tell("any")  # makes the worker notice
        bus.entity("echo", "e").tell("any")
        broker.wait_until(lambda: broker.welcomed >= 4)
        assert gate.ask("note", "new") is None
        Gate.go.set()
    worker.stop()  # waits for all that is still to be done
    assert Gate.order == ["other", "new"]


def test_stop_finishes_what_was_received(broker):
    worker = shardbus.Worker(broker.address, [GateEntity]).start()
    with shardbus.connect(broker.address) as bus:
        future = bus.entity("gate", "g").ask_future("wait")
        assert Gate.entered.wait(10)
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        Gate.go.set()
        future.result(10)
        stopping.join(10)
        assert not stopping.is_alive()


def same_shard(count, shard=3):
    return [name for name in (f"same-{n}" for n in range(400))
            if shard_of(name, SHARDS) == shard][:count]


def states(broker, type_name):
    return {entity: msgpack.unpackb(state) for (name, _), found in broker.released.items()
            for entity, state in found.items() if name == type_name}


def eventually(condition):
    # What a worker does alone no event of the broker tells.
    limit = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < limit
        threading.Event().wait(0.005)


def test_stop_hands_every_state_back(broker):
    with shardbus.Worker(broker.address, [Cart]), shardbus.connect(broker.address) as bus:
        for number in range(40):
            bus.entity("cart", f"c{number}").ask("add", {"name": "tea", "amount": number})
    assert states(broker, "cart") == {b"c%d" % number: {"tea": number} for number in range(40)}
    eventually(lambda: broker.seen[GOODBYE] == 2)


def test_a_handler_that_does_not_end_keeps_back_no_other_state(broker):
    names = same_shard(10)
    with shardbus.Worker(broker.address, [Stubborn]), shardbus.connect(broker.address) as bus:
        for name in names:
            bus.entity("stubborn", name).ask("note", name)
        hanging = bus.entity("stubborn", names[4]).ask_future("wait")
        assert Gate.entered.wait(10)
        broker.release("stubborn", 3, SHARDS)
        broker.wait_until(lambda: len(states(broker, "stubborn")) == 9)
        assert names[4].encode() not in states(broker, "stubborn")
        assert all(more for _, _, more in broker.parts)
        Gate.go.set()
        hanging.result(10)
        broker.wait_until(lambda: len(states(broker, "stubborn")) == 10)
        assert [more for _, _, more in broker.parts][-1] is False


def test_release_gives_back_what_has_not_begun(broker):
    """A queue longer than the node waits for must not cost the states."""
    with (shardbus.Worker(broker.address, [Stubborn], threads=1),
          shardbus.connect(broker.address) as bus):
        first, second = same_shard(2)
        hanging = bus.entity("stubborn", first).ask_future("wait")
        assert Gate.entered.wait(10)
        behind = [bus.entity("stubborn", name).ask_future("note", n, timeout=60)
                  for n, name in enumerate((first, first, second))]
        broker.wait_until(lambda: broker.seen[ASK] >= 4)  # and so they are before RELEASE
        broker.release("stubborn", 3, SHARDS)
        broker.wait_until(lambda: len(broker.returned) == 3)
        assert [envelope[4] for envelope in broker.returned] == [
            name.encode() for name in (first, first, second)]
        assert all(more for _, _, more in broker.parts)
        Gate.go.set()  # what has begun still ends, and its state travels
        hanging.result(10)
        broker.wait_until(lambda: not broker.parts[-1][2])  # the last part
        assert states(broker, "stubborn") == {first.encode(): f"state of {first}"}
        assert Gate.order == [] and not any(future.done() for future in behind)


def test_stop_returns_what_did_not_begin_in_time(broker):
    worker = shardbus.Worker(broker.address, [Stubborn], threads=1).start()
    with shardbus.connect(broker.address) as bus:
        hanging = bus.entity("stubborn", "hangs").ask_future("wait")
        assert Gate.entered.wait(10)
        bus.entity("stubborn", "hangs").tell("note", 1)
        behind = [bus.entity("stubborn", name).ask_future("note", 2, timeout=60)
                  for name in ("hangs", "other")]
        bus.entity("echo", "e").ask("any")
        stopping = threading.Thread(target=worker.stop, args=(2,))
        stopping.start()
        broker.wait_until(lambda: len(broker.returned) == 3)
        assert [envelope[4] for envelope in broker.returned if envelope[0] == TELL] == [b"hangs"]
        for _, _, port, type_name, *_ in broker.returned[1:]:
            assert type_name == "stubborn" and (port is None or len(port) == 2)
        Gate.go.set()  # and what is running may still end
        hanging.result(10)
        stopping.join(10)
        assert not stopping.is_alive()
        assert not any(future.done() for future in behind)
    assert Gate.order == []
    assert states(broker, "stubborn") == {b"hangs": "state of hangs"}


def test_stop_does_not_wait_for_ever(broker):
    worker = shardbus.Worker(broker.address, [Stubborn]).start()
    with shardbus.connect(broker.address) as bus:
        hanging = bus.entity("stubborn", "hangs").ask_future("wait", timeout=30)
        bus.entity("stubborn", "idle").ask("note", 1)
        assert Gate.entered.wait(10)
        worker.stop(0.5)
        assert not worker.link.is_alive()
        assert states(broker, "stubborn") == {b"idle": "state of idle"}
        Gate.go.set()
        hanging.cancel()


def test_no_handler_begins_while_the_node_stands_still():
    thaw = threading.Event()
    with FakeBroker(ping_ms=20000) as broker:
        broker.lease_ms = 400
        worker = shardbus.Worker(broker.address, [GateEntity], threads=1).start()
        with shardbus.connect(broker.address) as bus:
            gate = bus.entity("gate", "g")
            gate.tell("wait")
            gate.tell("note", "queued behind it")
            bus.entity("gate", "other").tell("note", "queued in the pool")
            assert Gate.entered.wait(10)
            bus.entity("echo", "e").ask("any")
            frozen = threading.Thread(target=broker.do, args=(lambda: thaw.wait(9),))
            frozen.start()
            eventually(lambda: not worker.link.session.leased(clock.now()))
            Gate.go.set()
            eventually(lambda: len(worker._stalled) == 2)
            assert Gate.order == []
            thaw.set()
            frozen.join()
            eventually(lambda: len(Gate.order) == 2)
        worker.stop()


def test_a_refused_worker_says_why():
    text = "cart: 16 shards here, 256 there"
    with FakeBroker(reject={"code": 16, "text": text}) as broker:
        with pytest.raises(shardbus.ConfigMismatch, match=text):
            shardbus.Worker(broker.address, [Cart]).start()


def test_workers_begin_at_different_addresses_of_their_list():
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(FakeBroker()) for _ in range(2)]
        addresses = [broker.address for broker in brokers]
        # That 40 of them choose alike happens once in 5e11 runs.
        for _ in range(40):
            if all(broker.greetings for broker in brokers):
                break
            with shardbus.Worker(addresses, [Cart]):
                pass
        assert all(broker.greetings for broker in brokers)
        hello = brokers[0].greetings[0]
        assert hello["sender"] % 2 == 0, "its own number says where"


def test_a_class_without_the_mark():
    with pytest.raises(shardbus.InvalidArgument):
        shardbus.Worker("tcp://127.0.0.1:1", [Gate])
