"""The pure session: time and frames in, frames and ends of asks out."""

import pytest
from shardbus import error_table as errors
from shardbus import wire
from shardbus.session import Call, Handler, Session, Settings
from shardbus.wire import Kind

NODE = ["node-a", 1700000000000000, 3238988543385071, "", "", ""]


class Driver:
    """A session with a hand-moved clock and a list of all that ended."""

    def __init__(self, role="client", handler=None, **settings):
        self.now = 100.0
        self.session = Session(Settings(role, 7, **settings), handler)
        self.ended = {}
        self.session.connected(self.now)

    def sent(self):
        return [item for frame in self.session.take_frames() for item in wire.read_frame(frame)]

    def sent_kinds(self):
        return [item.kind for item in self.sent()]

    def receive(self, *envelopes):
        self.session.receive([b"".join(envelopes)], self.now)

    def welcome(self, session=1, credit=(100, 100000), ping_ms=1000, **fields):
        self.receive(wire.envelope(Kind.WELCOME, {
            "session": session, "node": NODE, "credit": list(credit), "ping_ms": ping_ms,
            **fields}))
        return self

    def wait(self, seconds):
        self.now += seconds
        self.session.tick(self.now)

    def ask(self, name, timeout=5.0, payload=b"\xc0"):
        def done(value, error):
            assert name not in self.ended, "an ask ended twice"
            self.ended[name] = value if error is None else type(error)

        deadline = None if timeout is None else self.now + timeout
        self.session.call(Call("t", b"i", name, payload, deadline, done), self.now)

    def tell(self, method="m", payload=b"\xc0"):
        self.session.call(Call("t", b"i", method, payload), self.now)


def opened(**welcome):
    driver = Driver().welcome(**welcome)
    driver.sent()
    return driver


def test_greets_each_second_and_then_wants_a_new_socket():
    driver = Driver()
    hello = driver.sent()
    assert [item.kind for item in hello] == [Kind.HELLO]
    assert hello[0].body[0]["role"] == "client"
    driver.wait(0.5)
    assert driver.sent() == []
    driver.wait(0.5)
    assert driver.sent_kinds() == [Kind.HELLO]
    driver.wait(2.0)
    assert driver.session.rebuild_at == pytest.approx(driver.now + 0.1)


def test_sends_nothing_before_the_welcome_and_keeps_the_order():
    driver = Driver()
    driver.tell("one")
    driver.ask("two")
    assert driver.sent_kinds() == [Kind.HELLO]
    driver.welcome()
    assert [item.value.method for item in driver.sent()] == ["one", "two"]


def test_messages_say_that_the_sender_has_greeted():
    driver = opened()
    driver.tell()
    driver.ask("a")
    assert [item.flags for item in driver.sent()] == [wire.FLAG_GREETED, wire.FLAG_GREETED]


def test_an_ask_ends_with_its_reply_or_its_error():
    driver = opened()
    driver.ask("good")
    driver.ask("bad")
    first, second = driver.sent()
    driver.receive(wire.error(second.correlation, 3, "bad"), wire.reply(first.correlation, b"\x01"),
                   wire.reply(first.correlation, b"\x02"))
    assert driver.ended == {"good": b"\x01", "bad": errors.NoSuchMethod}
    assert driver.session.counters["late_answers"] == 1


def test_time_left_is_what_is_left_when_it_is_sent():
    driver = Driver()
    driver.ask("a", timeout=2.0)
    driver.now += 0.5
    driver.welcome()
    (ask,) = [item for item in driver.sent() if item.kind == Kind.ASK]
    assert ask.value.time_left_ms == 1500


def test_a_deadline_is_timeout_if_sent_and_expired_if_not():
    driver = opened(credit=(1, 1000))
    driver.ask("sent", timeout=1.0)
    driver.ask("unsent", timeout=1.0)
    driver.wait(1.0)
    assert driver.ended == {}  # the node may answer `timeout` itself
    driver.wait(0.2)
    assert driver.ended == {"sent": errors.Timeout, "unsent": errors.Expired}


def test_credit_is_absolute_and_counts_envelopes_and_bytes():
    driver = opened(credit=(2, 100000))
    for _ in range(4):
        driver.tell()
    assert len(driver.sent()) == 2
    driver.receive(wire.envelope(Kind.CREDIT, 3, 1))  # bytes do not shrink
    assert len(driver.sent()) == 1
    driver.receive(wire.envelope(Kind.CREDIT, 2, 100000))  # an old one
    assert driver.sent() == []
    driver.receive(wire.envelope(Kind.CREDIT, 100, 100000))
    assert len(driver.sent()) == 1
    driver.tell(payload=b"x" * 99999)
    assert driver.sent() == []


def test_too_many_waiting_and_too_large():
    driver = Driver(max_waiting=2)
    driver.tell()
    driver.ask("a")
    with pytest.raises(errors.Overloaded):
        driver.tell()
    driver.welcome(limits={"payload_bytes": 10})
    with pytest.raises(errors.TooLarge):
        driver.tell(payload=b"x" * 11)


def test_no_session_ends_what_was_sent_and_keeps_what_was_not():
    driver = opened(credit=(1, 100000))
    driver.ask("sent")
    driver.ask("unsent")
    driver.sent()
    refusal = wire.envelope(Kind.NO_SESSION, {"code": 12})
    driver.receive(refusal, refusal)
    assert driver.ended == {"sent": errors.UnknownOutcome}
    assert driver.sent_kinds() == [Kind.HELLO]
    driver.welcome(session=2)
    assert [item.value.method for item in driver.sent()] == ["unsent"]


def test_a_repeated_welcome_changes_nothing():
    driver = opened(credit=(1, 100000))
    driver.tell()
    driver.tell()
    assert len(driver.sent()) == 1
    driver.welcome(credit=(1, 100000))
    assert driver.sent() == []


def test_pings_after_silence_and_gives_up_after_four():
    driver = opened(ping_ms=1000)
    driver.ask("a", timeout=None)
    driver.sent()
    for _ in range(3):
        driver.wait(1.0)
        assert driver.sent_kinds() == [Kind.PING]
    driver.wait(1.0)
    assert driver.ended == {"a": errors.UnknownOutcome}
    assert driver.session.rebuild_at == driver.now


def test_everything_received_counts_against_silence():
    driver = opened(ping_ms=1000)
    for _ in range(5):
        driver.wait(0.9)
        driver.receive()
    assert driver.sent() == []


def test_own_sleep_is_not_the_nodes_silence():
    driver = opened(ping_ms=1000)
    driver.wait(60.0)
    assert driver.session.state == "open"


def test_answers_a_ping():
    driver = opened()
    driver.receive(wire.envelope(Kind.PING))
    assert driver.sent_kinds() == [Kind.PONG]


def test_goodbye_moves_on():
    driver = opened()
    driver.ask("a")
    driver.sent()
    driver.receive(wire.envelope(Kind.GOODBYE))
    driver.ask("b")
    assert driver.sent_kinds() == []
    assert driver.ended == {}
    driver.wait(2.0)
    assert driver.ended == {"a": errors.UnknownOutcome}
    assert driver.session.rebuild_at == pytest.approx(driver.now + 0.1)


def test_what_was_sent_before_a_goodbye_is_still_answered():
    driver = opened()
    driver.ask("a")
    driver.sent()
    driver.receive(wire.envelope(Kind.GOODBYE))
    assert driver.session.state == "open"
    driver.receive(wire.reply(1, wire.pack(7)))
    assert driver.ended == {"a": wire.pack(7)}
    assert driver.session.state == "closed"


def test_reject_waits_as_told_and_names_the_reason():
    driver = Driver()
    driver.ask("a", timeout=1.0)
    driver.receive(wire.envelope(Kind.REJECT, {"code": 20, "retry_after_ms": 1500}))
    assert driver.session.rebuild_at == pytest.approx(driver.now + 1.5)
    driver.wait(1.2)
    assert driver.ended == {"a": errors.Busy}


def test_a_node_that_cannot_take_us_now_is_named_and_the_next_one_asked_at_once(caplog):
    driver = Driver("worker", addresses=("tcp://a:1", "tcp://b:1"))
    text = "this node leaves the cluster"
    reject = {"code": errors.NotReady.code, "text": text, "retry_after_ms": 1500}
    pauses = []
    for address in ("tcp://b:1", "tcp://a:1", "tcp://b:1"):
        driver.session.connected(driver.now, address)
        driver.receive(wire.envelope(Kind.REJECT, reject))
        pauses.append(driver.session.rebuild_at - driver.now)
    # Each is asked once at once; then there is time.
    assert pauses == pytest.approx([0.1, 1.5, 0.1])
    assert [record.getMessage() for record in caplog.records] == [
        f"rejected by tcp://b:1: not_ready: {text}; going on with the next address",
        f"rejected by tcp://a:1: not_ready: {text}; going on with the next address in 1.5 s",
        f"rejected by tcp://b:1: not_ready: {text}; going on with the next address"]


def test_a_node_that_is_the_only_one_is_asked_again(caplog):
    driver = Driver("worker", addresses=("tcp://a:1",))
    driver.session.connected(driver.now, "tcp://a:1")
    driver.receive(wire.envelope(Kind.REJECT, {"code": errors.NotReady.code, "text": "not yet",
                                               "retry_after_ms": 1000}))
    assert driver.session.rebuild_at == pytest.approx(driver.now + 1)
    assert caplog.records[0].getMessage() == (
        "rejected by tcp://a:1: not_ready: not yet; trying again in 1 s")


def test_batches_as_large_as_the_node_takes_them():
    driver = opened(limits={"batch": 3})
    for _ in range(7):
        driver.tell()
    frames = driver.session.take_frames()
    assert [len(list(wire.read_frame(frame))) for frame in frames] == [3, 3, 1]


def test_stop_says_goodbye_and_ends_everything():
    driver = opened(credit=(1, 100000))
    driver.ask("sent")
    driver.ask("unsent")
    driver.session.stop()
    assert driver.sent_kinds() == [Kind.ASK, Kind.GOODBYE]
    assert driver.ended == {"sent": errors.UnknownOutcome, "unsent": errors.Stopped}
    with pytest.raises(errors.Stopped):
        driver.tell()


def test_an_answer_that_cannot_be_read_still_ends_the_ask():
    driver = opened()
    driver.ask("a")
    (ask,) = driver.sent()
    driver.receive(wire.envelope(Kind.REPLY, [], correlation=ask.correlation))
    assert driver.ended == {"a": errors.UnknownOutcome}


def test_garbage_and_strange_frames_do_no_harm():
    driver = opened()
    for parts in ([b""], [b"", b""], [b"a", b"b", b"c"], [b"\xc1"], [b"\x93\x01"], [b"\x00" * 50]):
        driver.session.receive(parts, driver.now)
    driver.receive(wire.envelope(Kind.DIGEST, 1), wire.pack([200, 0, None]))
    assert driver.session.state == "open"


def test_a_workers_answers_of_an_old_session_are_not_sent():
    class Recorder(Handler):
        lost = 0

        def session_lost(self):
            self.lost += 1

    handler = Recorder()
    driver = Driver("worker", handler, types=(("cart", 256),), credit=(10, 1000))
    assert driver.sent()[0].body[0]["types"] == [["cart", 256]]
    driver.welcome(credit=(0, 0))
    driver.session.answer(wire.reply([1, 2], b""), driver.now)
    driver.receive(wire.envelope(Kind.NO_SESSION, {"code": 12}))
    assert handler.lost == 1
    driver.sent()
    driver.welcome(session=2)
    assert driver.sent() == []


def test_released_waits_behind_answers_but_costs_nothing():
    driver = Driver("worker")
    driver.welcome(credit=(1, 1000))
    driver.sent()
    for envelope in (wire.reply([1, 1], b""), wire.reply([1, 2], b"")):
        driver.session.answer(envelope, driver.now)
    driver.session.answer_free(wire.envelope(Kind.RELEASED, "cart", 1, [], False), driver.now)
    assert driver.sent_kinds() == [Kind.REPLY]
    driver.receive(wire.envelope(Kind.CREDIT, 2, 1000))
    assert driver.sent_kinds() == [Kind.REPLY, Kind.RELEASED]


def leased_worker():
    driver = Driver("worker").welcome(ping_ms=10000, worker_lease_ms=2000)
    driver.sent()
    return driver


def test_a_lease_counts_from_the_ping_that_the_node_answered():
    driver = leased_worker()
    driver.wait(0.5)
    driver.wait(0.5)
    assert driver.sent_kinds() == [Kind.PING, Kind.PING]
    driver.receive(wire.envelope(Kind.PONG))
    driver.wait(1.4)
    assert driver.session.leased(driver.now)
    driver.wait(0.1)
    assert not driver.session.leased(driver.now), "the second PING has no answer"
    driver.receive(wire.envelope(Kind.PONG))
    assert driver.session.leased(driver.now)


def test_what_a_silent_node_sent_before_renews_no_lease():
    driver = leased_worker()
    driver.wait(2.1)
    driver.receive(wire.envelope(Kind.CREDIT, 2, 1000))
    assert not driver.session.leased(driver.now)


def test_without_a_lease_a_worker_may_always_begin():
    driver = Driver("worker").welcome()
    driver.wait(3.5)
    assert driver.session.leased(driver.now)


def test_who_gives_back_hears_of_the_end_and_does_not_greet_again():
    class Recorder(Handler):
        times = 0

        def given_back(self):
            self.times += 1

    handler = Recorder()
    driver = Driver("worker", handler).welcome()
    driver.sent()
    assert driver.session.give_back()
    (offer,) = driver.sent()
    assert (offer.kind, offer.body) == (Kind.OFFER, [[]])
    driver.receive(wire.envelope(Kind.GOODBYE))
    assert handler.times == 1
    driver.receive(wire.envelope(Kind.NO_SESSION, {"code": 12}))
    assert driver.sent() == [] and driver.session.rebuild_at is None
