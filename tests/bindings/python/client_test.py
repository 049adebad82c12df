"""Client and AsyncClient against a node that speaks the protocol."""

import asyncio
import threading
import time

import pytest
import shardbus
from fake_broker import ASK, ERROR, PING, REPLY, TELL, FakeBroker, pack


@pytest.fixture(name="broker")
def fixture_broker():
    with FakeBroker() as broker:
        yield broker


@pytest.fixture(name="bus")
def fixture_bus(broker):
    with shardbus.connect(broker.address) as bus:
        yield bus


def test_tell_and_ask(bus):
    counter = bus.entity("counter", "cart-42")
    counter.tell("add", {"amount": 3})
    assert counter.ask("add", {"amount": 4}) == 7
    assert counter.ask("get") == 7
    assert bus.entity("counter", "other").ask("get") == 0


@pytest.mark.parametrize("value", [None, True, 5, -5, 1.5, "text", b"\x00\xff", [1, [2]],
                                   {"a": {"b": None}}, 1 << 60])
def test_values_come_back_as_they_were(bus, value):
    assert bus.entity("echo", "e").ask("any", value) == value


def test_errors_are_exceptions_of_their_own(bus):
    with pytest.raises(shardbus.NoSuchMethod) as caught:
        bus.entity("counter", "c").ask("fly")
    error = caught.value
    assert (error.code, error.name, error.retry, error.may_have_happened, error.text) == (
        3, "no_such_method", "no", False, "fly")
    assert isinstance(error, shardbus.ShardbusError)
    with pytest.raises(shardbus.NoSuchType):
        bus.entity("nothing", "c").ask("fly")


def test_unknown_codes_survive(broker, bus):
    future = bus.entity("echo", "e").ask_future("never")
    broker.wait_until(lambda: broker.seen[ASK] == 1)
    broker.send_to_all(pack([ERROR, 0, 1, 999, "later version"]))
    error = future.exception(10)
    assert type(error) is shardbus.ShardbusError
    assert (error.code, error.retry, error.may_have_happened) == (999, "no", True)


def test_a_client_ends_at_once_though_the_error_of_a_lost_session_is_kept():
    with FakeBroker() as broker:
        bus = shardbus.connect(broker.address)
        future = bus.entity("echo", "e").ask_future("never")
        broker.wait_until(lambda: broker.seen[ASK] == 1)
        broker.vanish()
        assert isinstance(future.exception(10), shardbus.UnknownOutcome)
        begin = time.monotonic()
        bus.close()
        # Its error has the frames in which the connection was read.
        assert not bus.link.is_alive() and time.monotonic() - begin < 4
        assert future.exception() is not None


def test_timeout_is_also_pythons(bus):
    with pytest.raises(TimeoutError) as caught:
        # Long enough to be sent even on a busy machine: unsent it would be `expired`.
        bus.entity("echo", "e").ask("never", timeout=1)
    assert isinstance(caught.value, shardbus.Timeout)


def test_arguments_are_checked_before_anything_is_sent(bus):
    for wrong in (lambda: bus.entity("", "i"), lambda: bus.entity("t" * 65, "i"),
                  lambda: bus.entity("t", "i" * 257),
                  lambda: bus.entity("t", "i").tell("m" * 129)):
        with pytest.raises((shardbus.InvalidArgument, shardbus.TooLarge)):
            wrong()
    with pytest.raises(shardbus.TooLarge):
        bus.entity("echo", "e").ask("any", b"x" * (1 << 20))


def test_a_reply_that_is_no_msgpack(broker, bus):
    future = bus.entity("echo", "e").ask_future("never")
    broker.wait_until(lambda: broker.seen[ASK] == 1)
    broker.send_to_all(pack([REPLY, 0, 1, b"\xc1"]))
    assert isinstance(future.exception(10), shardbus.DecodeFailed)


def test_a_forgotten_session_is_begun_again(broker, bus):
    counter = bus.entity("counter", "c")
    assert counter.ask("add", {"amount": 1}) == 1
    broker.forget_sessions()
    with pytest.raises(shardbus.UnknownOutcome):
        counter.ask("get")  # it was sent, so nobody knows
    assert counter.ask("get") == 1
    assert broker.welcomed == 2


def test_goodbye_of_the_node(broker, bus):
    future = bus.entity("echo", "e").ask_future("never")
    broker.wait_until(lambda: broker.seen[ASK] == 1)
    broker.say_goodbye()
    assert isinstance(future.exception(10), shardbus.UnknownOutcome)
    assert bus.entity("echo", "e").ask("any", 1) == 1


def test_a_silent_node_is_left_for_the_next_one():
    with FakeBroker(ping_ms=100) as first, FakeBroker() as second:
        with shardbus.connect([first.address, second.address]) as bus:
            first.silent = True
            with pytest.raises(shardbus.UnknownOutcome):
                bus.entity("echo", "e").ask("never")
            assert first.seen[PING] >= 3
            assert bus.entity("echo", "e").ask("any", "moved") == "moved"
            assert second.welcomed == 1


def test_no_credit_means_waiting_and_nothing_is_sent_beyond_it():
    with FakeBroker(credit=(3, 100000)) as broker, shardbus.connect(broker.address) as bus:
        broker.grants = False
        echo = bus.entity("echo", "e")
        assert [echo.ask("any", n) for n in range(3)] == [0, 1, 2]
        with pytest.raises(shardbus.Expired):
            echo.ask("any", 3, timeout=0.05)
        assert broker.seen["over credit"] == 0


def test_small_credit_is_enough_for_many_messages():
    with FakeBroker(credit=(4, 1000)) as broker, shardbus.connect(broker.address) as bus:
        echo = bus.entity("echo", "e")
        futures = [echo.ask_future("any", n) for n in range(300)]
        assert [future.result(10) for future in futures] == list(range(300))
        assert broker.seen["over credit"] == 0


def test_many_threads_share_a_client(bus):
    counter = bus.entity("counter", "shared")
    threads = [threading.Thread(target=lambda: [counter.ask("add", {"amount": 1})
                                                for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.ask("get") == 400


def test_connect_names_the_reason_of_a_refusal():
    with FakeBroker(reject={"code": 15, "text": "theirs a, yours b"}) as broker:
        with pytest.raises(shardbus.ClusterMismatch, match="theirs a, yours b"):
            shardbus.connect(broker.address)


def test_an_unknown_route_is_refused(broker):
    with pytest.raises(shardbus.InvalidArgument, match="any, owners"):
        shardbus.connect(broker.address, route="shortest")


def test_route_owners_through_a_node_that_has_no_table_and_restarts(broker):
    with shardbus.connect(broker.address, route="owners") as bus:
        counter = bus.entity("counter", "c")
        counter.tell("add", {"amount": 3})
        assert counter.ask("get") == 3
        assert [hello.get("table") for hello in broker.greetings] == [True]
        future = bus.entity("echo", "e").ask_future("never")
        broker.wait_until(lambda: broker.seen[ASK] == 2)
        broker.forget_sessions()
        counter.tell("add", {"amount": 1})
        assert isinstance(future.exception(10), shardbus.UnknownOutcome)
        assert counter.ask("get") == 3  # that tell met the end of the session
        assert len(broker.greetings) == 2


def test_connect_to_nobody():
    with pytest.raises(shardbus.Unreachable, match="no node answers"):
        shardbus.connect("tcp://127.0.0.1:1", timeout=0.2)


def test_close_ends_what_is_open_and_refuses_the_rest(broker):
    bus = shardbus.connect(broker.address)
    future = bus.entity("echo", "e").ask_future("never", timeout=None)
    broker.wait_until(lambda: broker.seen[ASK] == 1)
    bus.close()
    bus.close()
    assert isinstance(future.exception(10), shardbus.UnknownOutcome)
    with pytest.raises(shardbus.Stopped):
        bus.entity("echo", "e").ask("any")


def test_close_sends_what_was_told(broker):
    with shardbus.connect(broker.address) as bus:
        for _ in range(100):
            bus.entity("counter", "last").tell("add", {"amount": 1})
    # Another connection may overtake: order is promised within one session.
    broker.wait_until(lambda: broker.seen[TELL] == 100)
    with shardbus.connect(broker.address) as bus:
        assert bus.entity("counter", "last").ask("get") == 100


def test_a_blocking_ask_in_a_callback_fails_instead_of_hanging(bus):
    echo = bus.entity("echo", "e")
    failure = []
    done = threading.Event()

    def callback(_):
        try:
            echo.ask("any")
        except shardbus.ShardbusError as error:
            failure.append(error)
        done.set()

    echo.ask_future("any").add_done_callback(callback)
    assert done.wait(10)
    # The callback runs here if the answer was faster than add_done_callback.
    assert not failure or isinstance(failure[0], shardbus.WouldDeadlock)


def test_asyncio(broker):
    async def scenario():
        async with await shardbus.connect_async(broker.address) as bus:
            echo = bus.entity("echo", "e")
            assert await asyncio.gather(*(echo.ask("any", n) for n in range(20))) == list(range(20))
            cancelled = asyncio.ensure_future(echo.ask("never", timeout=None))
            broker_has_it = asyncio.get_running_loop().run_in_executor(
                None, broker.wait_until, lambda: broker.seen[ASK] == 21)
            await broker_has_it
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            with pytest.raises(shardbus.NoSuchMethod):
                await bus.entity("counter", "c").ask("fly")
            assert await echo.ask("any", "still here") == "still here"

    asyncio.run(scenario())


def test_a_broken_connection_ends_asks_at_once_and_the_next_address_is_used():
    # No pings: silence would never show it.
    with FakeBroker(ping_ms=0) as second:
        with FakeBroker(ping_ms=0) as first:
            with shardbus.connect([first.address, second.address]) as bus:
                future = bus.entity("echo", "e").ask_future("never", timeout=60)
                first.wait_until(lambda: first.seen[ASK] == 1)
                first.vanish()
                assert isinstance(future.exception(5), shardbus.UnknownOutcome)
                assert bus.entity("counter", "c").ask("add", {"amount": 1}, timeout=5) == 1
                assert second.welcomed == 1


def test_a_refused_address_is_passed_over_at_once():
    with FakeBroker() as broker:
        begin = time.monotonic()
        with shardbus.connect(["tcp://127.0.0.1:1", broker.address]) as bus:
            assert bus.entity("counter", "c").ask("get") == 0
        assert time.monotonic() - begin < 2


@pytest.mark.parametrize("address, wrong", [
    ("127.0.0.1:7400", "does not start with tcp://"), ("tcp://127.0.0.1", "no host or no port"),
    ("tcp://:7400", "no host or no port"), ("tcp://a b:7400", "host that cannot be one"),
    ("tcp://127.0.0.1:x", "not a number"), ("tcp://127.0.0.1:70000", "not a number"),
    ("tcp://127.0.0.1:0", "not a number")])
def test_what_is_no_address_is_named_before_anything_is_opened(address, wrong):
    threads = threading.active_count()
    for start in (shardbus.connect, lambda given: shardbus.connect(given, route="owners"),
                  lambda given: shardbus.connect(["tcp://127.0.0.1:7400", given])):
        with pytest.raises(shardbus.BadAddress) as caught:
            start(address)
        assert wrong in caught.value.text and address in caught.value.text
        assert "write tcp://HOST:PORT" in caught.value.text
    assert threading.active_count() == threads


def test_no_address_at_all_is_an_error_too():
    with pytest.raises(shardbus.BadAddress):
        shardbus.connect([])
