"""Malformed input at the port for nodes (PROTOCOL.md section 12.1)."""

import random

import pytest

from daemons import BIN, Daemon
from raw_peer import (CREDIT, ERROR, HELLO, LINK, NO_SESSION, PING, PONG, REJECT, WELCOME, RawPeer,
                      ask, pack, resident, wait_until)

MALFORMED, VERSION_MISMATCH, CLUSTER_MISMATCH, STALE_INCARNATION = 9, 14, 15, 19
GROWTH = 24 << 20


@pytest.fixture(name="broker", scope="module")
def fixture_broker():
    with Daemon("--name", "target", "--cluster", "shop") as daemon:
        yield daemon.ready()


@pytest.fixture(autouse=True)
def fixture_unharmed(broker):
    pid = broker.process.pid
    before = resident(pid)
    yield
    with RawPeer(broker.address) as client:
        client.call("after")
    assert broker.process.poll() is None
    wait_until(lambda: resident(pid) - before < GROWTH, "memory as before")


@pytest.fixture(name="peer")
def fixture_peer(broker):
    with RawPeer(broker.fields["peer"]) as peer:
        yield peer


def node_info(name, incarnation):
    digest = 0xCBF29CE484222325
    for byte in name.encode() + b"\0" + incarnation.to_bytes(8, "little"):
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    key = digest % 2**53 or 1
    return [name, incarnation, key, *(f"tcp://127.0.0.1:{port}" for port in (1, 2, 3))]


def hello(name="stranger", incarnation=1, **more):
    fields = {"version": [1, 0], "role": "node", "cluster": "shop",
              "node": node_info(name, incarnation), **more}
    return pack(HELLO, 0, None, {key: value for key, value in fields.items() if value is not None})


def greet(peer, *arguments, **more):
    peer.send(hello(*arguments, **more))
    answer = peer.receive(WELCOME, REJECT)
    assert answer[0] == WELCOME, answer
    return answer[3]["session"]


def ping(peer, session, sequence):
    peer.send(pack(LINK, 0, None, session, sequence) + pack(PING, 0, None))
    return peer.receive()[0]


@pytest.mark.parametrize("fields,code", [
    ({"role": "client", "node": None}, MALFORMED),
    ({"role": "worker", "node": None}, MALFORMED),
    ({"node": None}, MALFORMED),
    ({"node": ["x"]}, MALFORMED),
    ({"node": [*node_info("x", 1)[:2], 5, *node_info("x", 1)[3:]]}, MALFORMED),  # not its key
    ({"node": node_info("a b", 1)}, MALFORMED),
    ({"version": [2, 0]}, VERSION_MISMATCH),
    ({"cluster": "garden"}, CLUSTER_MISMATCH),
    ({"cluster": ""}, CLUSTER_MISMATCH),
])
def test_a_hello_that_is_wrong_is_rejected(peer, fields, code):
    peer.send(hello(**fields))
    answer = peer.receive()
    assert answer[0] == REJECT and answer[3]["code"] == code
    assert ping(peer, 1, 1) == NO_SESSION


def test_garbage_without_a_session_does_no_harm(peer):
    source = random.Random(7)
    for _ in range(1000):
        peer.send(source.randbytes(source.randrange(1, 200)))
    for frame in (b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * (1 << 20), ask(1)):
        peer.send(frame)
    greet(peer, "garbage")


def test_what_is_no_link_first_is_no_session(peer):
    session = greet(peer, "no-link")
    for frame in (ask(1), pack(PING, 0, None), pack(LINK, 0, None, session),
                  pack(LINK, 0, None, session + 1, 1), pack(LINK, 0, None, "x", 1)):
        peer.send(frame)
        assert peer.receive()[0] == NO_SESSION
    assert ping(peer, session, 1) == PONG


def test_garbage_behind_a_link_ends_in_a_gap_and_a_new_session_works(peer):
    session = greet(peer, "behind")
    assert ping(peer, session, 1) == PONG
    peer.send(pack(LINK, 0, None, session, 2) + b"\xc1garbage")  # counts as one envelope
    assert ping(peer, session, 3) == PONG
    peer.send(pack(LINK, 0, None, session, 4) + pack(200, 0, 1) + pack(CREDIT, 0, None, "x", 1)
              + pack(70, 0, None, "t", b"i", b"") + pack(72, 0, None) + pack(57, 0, None, 5))
    assert ping(peer, session, 9) == PONG
    # A gap ends the session for good.
    assert ping(peer, session, 20) == NO_SESSION
    assert ping(peer, session, 10) == NO_SESSION
    assert ping(peer, greet(peer, "behind"), 1) == PONG


@pytest.mark.parametrize("kind", range(18, 64))
def test_every_kind_with_a_body_of_another_shape_does_no_harm(peer, kind):
    session = greet(peer, f"shape-{kind}")
    bodies = ([], [None], [1] * 9, ["x"] * 9, [[]] * 9, [{}] * 9, ["t", 2**53 - 1, [1, 1, 1], 1],
              ["echo", 70000, [1, None, 1], 1, 1, 1, 1], ["echo", 0, [2**53 - 1, 1, 1], 256, 1])
    for number, body in enumerate(bodies, 1):
        peer.send(pack(LINK, 0, None, session, number) + pack(kind, 0, None, *body))
    assert ping(peer, session, len(bodies) + 1) in (PONG, NO_SESSION)


def test_a_newer_session_of_a_node_makes_the_older_one_stale(broker, peer):
    first = greet(peer, "twice", 5)
    assert ping(peer, first, 1) == PONG
    with RawPeer(broker.fields["peer"]) as again:
        second = greet(again, "twice", 5)
        assert ping(again, second, 1) == PONG
        assert ping(peer, first, 2) == NO_SESSION
        assert ping(again, second, 2) == PONG


def test_an_older_incarnation_is_rejected(broker, peer):
    greet(peer, "reborn", 9)
    with RawPeer(broker.fields["peer"]) as again:
        again.send(hello("reborn", 8))
        answer = again.receive()
        assert answer[0] == REJECT and answer[3]["code"] == STALE_INCARNATION


def test_messages_of_many_frames_cut_their_sender(peer):
    greet(peer, "frames")
    peer.send(b"a", b"b", b"c")
    peer.is_cut()


def test_a_frame_beyond_the_limit_cuts_its_sender(broker, peer):
    session = greet(peer, "sizes")
    peer.send(pack(LINK, 0, None, session, 1) + b"\xc0" * (1114112 - 20))
    with RawPeer(broker.fields["peer"]) as other:
        greet(other, "larger")
        other.send(b"\xc0" * (1114112 + 1))
        other.is_cut()
    assert ping(peer, session, 2) == PONG


def test_asks_of_a_stranger_node_are_answered_with_an_error_or_not_at_all(peer):
    # Hops, correlations and senders that no node sends; the answer goes to the node that asked.
    session = greet(peer, "asker")
    port = [node_info("asker", 1)[2], 7]
    envelopes = [pack(2, 0, correlation, "echo", b"x", "echo", generation, sender, 1000, hops,
                      None, b"")
                 for correlation in (None, 1, port, [1, 1]) for hops in (0, 8, 255)
                 for generation in (None, [1, None, 1], [2**53 - 1, 1, 1])
                 for sender in (None, [2**53 - 1, 1, 1])]
    peer.send(pack(LINK, 0, None, session, 1) + b"".join(envelopes))
    assert ping(peer, session, 1 + len(envelopes)) in (PONG, ERROR, NO_SESSION)
