"""Clients that do not play by the rules of credit: zeromq.md section 5, tests 10, 21 and 22."""

import contextlib
import pathlib
import sys
import threading
import time

import pytest
import zmq

from daemons import BIN, SOURCE, Daemon, ctl_json
from raw_peer import ERROR, GREETED, NO_SESSION, RawPeer, ask, resident, tell, wait_until

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

MIB = 1 << 20
OVERLOADED = 6


@pytest.fixture(name="broker")
def fixture_broker():
    with Daemon("--name", "target", "--client-credit", "256") as daemon:
        yield daemon.ready()


def counters(broker):
    return ctl_json("status", node=broker.address)["counters"]


# RCVHWM of a flooder is 0: a libzmq whose queue is full reads nothing, and misses the cut.
def send_until_cut(peer, frame, most):
    """Sends a frame again and again until the broker ends the connection; gives how often."""
    sent = 0
    deadline = time.monotonic() + 60
    while sent < most and not peer.monitor.poll(0):
        assert time.monotonic() < deadline, "neither cut nor served"
        with contextlib.suppress(zmq.Again):
            peer.send(frame, flags=zmq.DONTWAIT)
            sent += 1
    return sent


def send_some(peer, frame):
    for _ in range(200):
        with contextlib.suppress(zmq.Again):
            peer.send(frame, flags=zmq.DONTWAIT)
    return True


class Watch:
    """The most resident memory of a process while it runs."""

    def __init__(self, pid):
        self.most = 0
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(0.02):
            self.most = max(self.most, resident(self._pid))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def test_a_flood_that_the_broker_keeps_up_with_is_served(broker):
    # Whoever ignores CREDIT but never exceeds it does no harm.
    before = resident(broker.process.pid)
    with RawPeer(broker.address, SNDHWM=100, RCVHWM=0) as flood:
        flood.greet()
        frame = tell("flood", payload=b"x" * 30, flags=GREETED)
        with Watch(broker.process.pid) as watch:
            send_until_cut(flood, frame, 20_000)
            wait_until(lambda: (counters(broker)["delivered"] + counters(broker)["tells_dropped"]
                                >= 20_000 or flood.monitor.poll(0)), "all is served")
        assert watch.most - before < 64 * MIB


@pytest.mark.parametrize("envelopes", [300, 1000])
def test_who_floods_without_credit_is_told_and_kicked(broker, envelopes):
    before = resident(broker.process.pid)
    with RawPeer(broker.address, SNDHWM=100, RCVHWM=0) as flood, RawPeer(broker.address) as other:
        other.greet()
        flood.greet()
        frame = tell("flood", payload=b"x" * 30, flags=GREETED) * envelopes
        with Watch(broker.process.pid) as watch:
            sent = send_until_cut(flood, frame, 10_000_000 // envelopes)
        flood.is_cut()
        assert sent * envelopes < 10_000_000
        other.call("beside", flags=GREETED)
        assert watch.most - before < 64 * MIB
        found = counters(broker)
        assert found["kicked"] == 1 and found["over_credit"] >= 1000
        # Each tell beyond the credit is counted; none of them was handled.
        assert found["tells_dropped"] == found["over_credit"]


def test_asks_over_credit_are_answered_overloaded_and_then_no_session(broker):
    with RawPeer(broker.address) as flood:
        credit = flood.greet(max_batch=64)["credit"][0]
        total = credit + 1000
        # In one pass, before any of it could renew the credit.
        flood.send(b"".join(ask(i, flags=GREETED) for i in range(1024)))
        flood.send(b"".join(ask(i, flags=GREETED) for i in range(1024, 2048)))
        codes, ended = [], None
        while ended is None:
            envelope = flood.receive()
            if envelope[0] == ERROR:
                codes.append(envelope[3])
            elif envelope[0] == NO_SESSION:
                ended = envelope[3]
        assert ended["code"] == OVERLOADED
        assert set(codes) <= {OVERLOADED} and total >= 1000
        flood.is_cut()
    assert counters(broker)["kicked"] == 1


@pytest.mark.parametrize("payload", [10, 1000, 60_000])
def test_who_never_reads_is_bounded(broker, payload):
    before = resident(broker.process.pid)
    frame = ask(1, payload=b"x" * payload, flags=GREETED) * max(1, 5000 // payload)
    with RawPeer(broker.address, RCVHWM=1, RCVBUF=4096) as deaf, RawPeer(broker.address) as other:
        deaf.greet()
        other.greet()
        with Watch(broker.process.pid) as watch:
            # A libzmq whose queue is full reads nothing, so it does not see the end either.
            wait_until(lambda: send_some(deaf, frame) and counters(broker)["kicked"], "the kick")
            other.call("beside", flags=GREETED)
        # What one client may have in the socket (1000 frames), unsent, and on its way to us.
        assert watch.most - before < 160 * MIB


def test_a_payload_of_the_limit_passes_and_one_byte_more_is_refused_before_sending(broker):
    with shardbus.connect(broker.address) as bus:
        echo = bus.entity("echo", "large")
        size = 1044480 - 5  # bin32 has a head of 5 bytes
        assert echo.ask("echo", b"x" * size) == b"x" * size
        with pytest.raises(shardbus.TooLarge):
            echo.ask("echo", b"x" * (size + 1))
        assert echo.ask("echo", 1) == 1
        assert not bus.link.session.counters["sessions_lost"]
