"""Malformed input against a running shardbusd: zeromq.md section 5, tests 1 to 14 and 16.

After every test the broker is the same process, it has not grown by more than GROWTH, and a client
that behaves well has its session still.
"""

import itertools
import random
import struct
import time

import msgpack
import pytest
import zmq

from daemons import BIN, Daemon, ctl_json
from raw_peer import (ASK, CREDIT, ERROR, GREETED, HELLO, NO_SESSION, PING, PONG, REJECT, REPLY,
                      WELCOME, RawPeer, ask, closed_by_other, descriptors, pack, resident, tcp,
                      tell, wait_until, zmtp)

FRAME, PAYLOAD = 1 << 20, 1044480
# Heap that the allocator keeps of frames of 1 MiB is the most of it.
GROWTH = 24 << 20
OVERLOADED, TOO_LARGE, MALFORMED, BAD_FRAME, UNKNOWN_KIND = 6, 8, 9, 10, 11
IDENTITY_SET, VERSION_MISMATCH, CLUSTER_MISMATCH, NOT_AUTHORISED = 13, 14, 15, 17


@pytest.fixture(name="broker", scope="module")
def fixture_broker():
    # The bystander pings nobody: its session has to outlive the slowest test.
    with Daemon("--name", "target", "--cluster", "shop", "--ping-interval", "10s") as daemon:
        yield daemon.ready()


@pytest.fixture(name="bystander", scope="module")
def fixture_bystander(broker):
    with RawPeer(broker.address) as peer:
        peer.greet()
        yield peer


@pytest.fixture(autouse=True)
def fixture_unharmed(broker, bystander):
    pid = broker.process.pid
    before = resident(pid)
    bystander.call("before", flags=GREETED)
    yield
    bystander.call("after", flags=GREETED)
    assert broker.process.poll() is None
    assert ctl_json("status", node=broker.address)["node"] == "target"
    wait_until(lambda: resident(pid) - before < GROWTH, "memory as before")


@pytest.fixture(name="peer")
def fixture_peer(broker):
    with RawPeer(broker.address) as peer:
        yield peer


def error(code, correlation=None):
    return [ERROR, 0, correlation, code]


# --- 1 to 3: messages of other shapes ------------------------------------------------------------

def test_an_empty_message_is_ignored_and_the_session_lives(peer):
    peer.greet()
    for _ in range(10):
        peer.send(b"")
        peer.send(b"", b"")
    peer.call(1, flags=GREETED)
    peer.nothing_more()


@pytest.mark.parametrize("frames", [3, 10, 100_000])
def test_a_message_of_many_frames_is_one_bad_frame(peer, bystander, frames):
    peer.send(*[b"x"] * frames)
    begin = time.monotonic()
    bystander.call("beside", flags=GREETED)
    assert time.monotonic() - begin < 2
    answer = peer.receive()
    assert answer[:4] == error(BAD_FRAME) and str(frames) in answer[4]
    peer.nothing_more()


def test_who_sends_bad_frames_again_and_again_is_kicked(peer):
    peer.greet()
    for _ in range(20):
        peer.send(b"a", b"b", b"c")
    peer.is_cut()


def test_both_shapes_are_answered_in_kind(peer):
    peer.send(b"", ask(1))
    assert peer.next_parts()[0] == b""
    peer.send(ask(2))
    assert len(peer.next_parts()) == 1
    peer.send(b"", b"", ask(3))
    assert peer.receive()[:4] == error(BAD_FRAME)
    peer.nothing_more()


# --- 4 to 6: bytes that are no envelope ----------------------------------------------------------

def test_every_prefix_of_an_envelope_is_one_malformed(peer):
    envelope = ask(1, payload=b"12345")
    for size in range(1, len(envelope)):
        peer.send(envelope[:size])
        answer = peer.receive()
        # With its correlation once that could be read, otherwise nil.
        assert answer[:2] + answer[3:4] == [ERROR, 0, MALFORMED] and answer[2] in (None, 1), size
    assert answer[2] == 1
    peer.nothing_more()


def test_random_bytes_do_no_harm(peer):
    source = random.Random(13)
    for _ in range(2000):
        frame = source.randbytes(source.randrange(1, 200))
        peer.send(frame)
        peer.send(bytes([0x90 | source.randrange(16), source.randrange(128), 0, 0xc0]) + frame)
    peer.send(ask("end"))
    codes = set()
    answer = peer.receive()
    while answer[0] != REPLY:
        codes.add(answer[3] if answer[0] == ERROR else answer[0])
        answer = peer.receive()
    assert answer[2] == "end"
    # 12, 13, 20: what HELLO, a stranger and WHO are answered.
    assert codes <= {TOO_LARGE, MALFORMED, UNKNOWN_KIND, NOT_AUTHORISED, REJECT, NO_SESSION, 20}


@pytest.mark.parametrize("head", [b"\xc1", b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9",
                                  b"\x9c\x02\x00\x01\xdb", b"\x9c\x02\x00\x01\xa1e\xc6",
                                  b"\x9c\x02\x00\xdd"])
def test_a_claimed_length_of_4_gib_allocates_nothing(broker, peer, head):
    frame = head + (b"" if head == b"\xc1" else b"\xff\xff\xff\xff")
    for _ in range(50):
        peer.send(frame)
        assert peer.receive()[3] == MALFORMED
    before = resident(broker.process.pid)
    for _ in range(100):
        peer.send(frame)
        assert peer.receive()[3] == MALFORMED
    assert resident(broker.process.pid) - before < 1 << 20
    peer.nothing_more()


@pytest.mark.parametrize("byte", [b"\x91", b"\x81", b"\xc0", b"\x90"])
def test_a_mebibyte_of_nesting_or_of_nothing_is_refused(peer, byte):
    for _ in range(10):
        peer.send(byte * FRAME)
        assert peer.receive()[:4] == error(MALFORMED)
    head = msgpack.packb([ASK, 0, 5, "echo", b"x", "echo", None, None, 0, 0, None])[1:]
    peer.send(b"\x9d" + head + b"\xc0" + byte * (FRAME - 100))  # behind what is known
    answers = [peer.receive() for _ in range(2 if byte in (b"\xc0", b"\x90") else 1)]
    assert error(MALFORMED) in [answer[:4] for answer in answers] or (
        answers[0][:4] == error(MALFORMED, 5))
    peer.nothing_more()


# --- 7 and 8: good envelopes beside bad ones -----------------------------------------------------

def test_what_stands_before_malformed_is_served_and_what_stands_behind_is_lost(peer):
    peer.send(ask(1) + ask(2) + b"\xc1" + ask(3) + ask(4))
    answers = sorted((peer.receive() for _ in range(3)), key=lambda answer: answer[0])
    assert [answer[2] for answer in answers] == [1, 2, None]
    assert answers[2][:4] == error(MALFORMED)
    peer.nothing_more()


def test_trailing_garbage_is_one_malformed(peer):
    peer.send(ask(1) + b"garbage")
    answers = sorted((peer.receive() for _ in range(2)), key=lambda answer: answer[0])
    assert answers[0][:3] == [REPLY, 0, 1] and answers[1][:4] == error(MALFORMED)
    peer.nothing_more()


@pytest.mark.parametrize("bad,code", [
    (ask(7, type_name="t" * 65), TOO_LARGE),
    (ask(7, payload=b"x" * (PAYLOAD + 1)), TOO_LARGE),
    (pack(ASK, 0, 7, "echo", b"i" * 257, "echo"), TOO_LARGE),
    (pack(200, 0, 7, "later"), UNKNOWN_KIND),
    (pack(62, 0, 7), NOT_AUTHORISED),
], ids=itertools.count())
def test_behind_other_refusals_all_is_served(peer, bad, code):
    peer.greet(max_batch=8)
    peer.send(ask(1, flags=GREETED) + bad + ask(2, flags=GREETED))
    answers = {answer[2]: answer for answer in (peer.receive() for _ in range(3))}
    assert answers[1][0] == answers[2][0] == REPLY and answers[7][:4] == error(code, 7)
    peer.nothing_more()


def test_the_credit_counts_what_was_served(broker):
    with RawPeer(broker.address) as peer:
        granted = peer.greet()["credit"][0]
        for i in range(granted):  # each frame has one envelope that counts, and garbage
            peer.send(ask(i, flags=GREETED) + b"\xc1")
        answers = []
        renewed = granted
        # New credit may come behind the answers, and before it comes there is none.
        while len(answers) < 2 * granted or renewed == granted:
            envelope = peer.receive(REPLY, ERROR, CREDIT)
            if envelope[0] == CREDIT:
                renewed = envelope[3]
            else:
                answers.append(envelope)
        assert sum(answer[0] == REPLY for answer in answers) == granted
        peer.call("more", flags=GREETED)


# --- 9: values at the edge -----------------------------------------------------------------------



@pytest.mark.parametrize("frame,code", [
    (pack(ASK, 0, 2**53 - 1, "echo", b"x", "echo"), 0),
    (pack(ASK, 0, 2**64 - 1, "echo", b"x", "echo"), 0),  # nobody computes with a correlation
    (pack(ASK, 0, -1, "echo", b"x", "echo"), 0),
    (pack(float(ASK), 0.0, 1, "echo", b"x", "echo", None, None, 3.0, 0.0), 0),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 3.5), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, -3), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, True), MALFORMED),
    (pack(ASK, 2**32, 1, "echo", b"x", "echo"), MALFORMED),
    (pack(ASK, 2**32 - 2, 1, "echo", b"x", "echo"), 0),
    (pack(ASK, 0, 1, b"echo", "x", b"echo"), 0),
    (pack(ASK, 0, 1, b"\xff\xfe", b"x", "echo"), MALFORMED),
    (pack(ASK, 0, 1, "", b"x", "echo"), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"", ""), 0),
    (pack(ASK, 0, 1, "echo", b"x"), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 0, 0, None, b"p", "later", [1, {}]), 0),
    (pack(ASK, 0, 1, "echo", b"x", "echo", [1]), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 0, 0, [], b""), MALFORMED),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 0, 0, {"a": [1, {"b": None}]}, b""), 0),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 0, 0, {"a": "x" * 8200}, b""), TOO_LARGE),
    (pack(ASK, 0, 1, "echo", b"x", "echo", None, None, 86_400_001), TOO_LARGE),
    (pack(ASK, 0, "c" * 38, "echo", b"x", "echo"), 0),
    (pack(ASK, 0, "c" * 39, "echo", b"x", "echo"), TOO_LARGE),
    (pack(ASK, 0, None, "echo", b"x", "echo"), MALFORMED),
    (pack(ASK, 0, [5, 6], "echo", b"x", "echo"), MALFORMED),
    (pack(ASK, 0, {}, "echo", b"x", "echo"), MALFORMED),
], ids=itertools.count())
def test_a_value_at_the_edge_is_taken_or_refused(peer, frame, code):
    peer.send(frame)
    answer = peer.receive()
    assert (answer[0], answer[3] if code else 0) == (ERROR if code else REPLY, code), answer
    peer.nothing_more()


def test_of_a_key_that_a_map_has_twice_the_last_counts(peer):
    # {"cluster": "other", "version": [1, 0], "role": "client", "cluster": "shop"}
    fields = [("cluster", "other"), ("version", [1, 0]), ("role", "client"), ("cluster", "shop")]
    body = b"".join(msgpack.packb(key) + msgpack.packb(value) for key, value in fields)
    peer.send(b"\x94\x0a\x00\xc0" + bytes([0x80 | len(fields)]) + body)
    assert peer.receive()[0] == WELCOME


# --- 10 and 11: size -----------------------------------------------------------------------------

def test_a_frame_of_the_limit_is_served_and_one_byte_more_cuts_its_sender(broker, peer):
    largest = ask(1, payload=b"x" * PAYLOAD)
    padding = FRAME - len(largest)
    peer.send(largest + b"\xc0" * padding)
    assert {peer.receive()[0], peer.receive()[0]} == {REPLY, ERROR}
    with RawPeer(broker.address) as other:
        other.greet()
        other.send(largest + b"\xc0" * (padding + 1))
        other.is_cut()
    peer.nothing_more()


def test_endless_frames_cost_what_was_sent_until_the_connection_ends(broker, bystander):
    # libzmq gathers a message of many frames before it shows it to anybody, so only the operating
    # system can bound it (bin/README.md, "Memory"). It is free again with the connection; that the
    # allocator may keep what one needed is why each sends less than GROWTH, and all of them more.
    frames, pid = 200, broker.process.pid
    frame = b"\x03" + struct.pack(">Q", 60_000) + bytes(60_000)
    before, connections = resident(pid), descriptors(pid)
    for _ in range(8):
        with zmtp(broker.address) as connection:
            for _ in range(frames):
                connection.sendall(frame)
            bystander.call("beside", flags=GREETED)
            assert resident(pid) - before < frames * 60_000 + GROWTH
        wait_until(lambda: descriptors(pid) <= connections, "the connection is closed")
        bystander.call("behind", flags=GREETED)
    wait_until(lambda: resident(pid) - before < GROWTH, "memory is free again")


# --- 12: what is from another time or place ------------------------------------------------------

def test_an_unknown_kind_is_answered_only_where_somebody_asks(peer):
    peer.send(pack(200, 0, "c"))
    assert peer.receive()[:4] == error(UNKNOWN_KIND, "c")
    peer.send(pack(200, 0, None, 1, 2))
    peer.nothing_more()


@pytest.mark.parametrize("fields,code,texts", [
    ({"version": [2, 0]}, VERSION_MISMATCH, ["1", "2"]),
    ({"cluster": "garden"}, CLUSTER_MISMATCH, ["shop", "garden"]),
])
def test_another_protocol_or_cluster_is_rejected_with_both_values(peer, fields, code, texts):
    peer.send(pack(HELLO, 0, None, {"version": [1, 0], "role": "client", **fields}))
    kind, _, _, body = peer.receive()
    assert kind == REJECT and body["code"] == code and body.get("retry_after_ms", 0) == 0
    assert all(text in body["text"] for text in texts)


@pytest.mark.parametrize("fields", [
    {}, {"version": [1, 0]}, {"version": 1, "role": "client"}, {"version": [1], "role": "client"},
    {"version": [1, 0], "role": "king"}, {"version": [1, 0], "role": "client", "max_batch": 0},
    {"version": [1, 0], "role": "client", "cluster": "c" * 65}, [], None,
    {"version": [1, 0], "role": "worker", "types": [["t", 0]]},
])
def test_a_hello_that_cannot_be_read_is_rejected(peer, fields):
    peer.send(pack(HELLO, 0, None, fields))
    kind, _, _, body = peer.receive()
    assert kind == REJECT and body["code"] in (MALFORMED, TOO_LARGE)
    peer.nothing_more()


# --- 13: other protocols on our port -------------------------------------------------------------

@pytest.mark.parametrize("first", [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
    b"\x01\x00" + b"\xff" * 64,                       # ZMTP 1, then a frame that is too long
    b"\xff" + bytes(8) + b"\x7f\x01\x05" + b"\x05" * 64,  # ZMTP 2, then nonsense
    b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"OTHER".ljust(20, b"\0") + bytes(32),
    b"",
])
def test_another_protocol_is_disconnected(broker, first):
    with tcp(broker.address) as connection:
        connection.sendall(first)
        closed_by_other(connection)


@pytest.mark.parametrize("kind,options", [(zmq.PUB, {}), (zmq.SUB, {}), (zmq.PUSH, {}),
                                          (zmq.DEALER, {"PLAIN_USERNAME": b"u",
                                                        "PLAIN_PASSWORD": b"p"})])
def test_another_socket_or_mechanism_is_refused_in_the_handshake(broker, kind, options):
    with RawPeer(broker.address, kind, **options) as other:
        other.is_cut()


# --- 14 and 16: identity and sessions ------------------------------------------------------------

def test_a_set_identity_is_refused_at_the_first_frame(broker):
    with RawPeer(broker.address, IDENTITY=b"me") as peer:
        for frame in (ask(1), pack(HELLO, 0, None, {"version": [1, 0], "role": "client"})):
            peer.send(frame)
            assert peer.receive()[:4] == error(IDENTITY_SET)


def test_greeted_without_a_session_is_no_session_and_is_not_served(peer):
    peer.send(ask(1, flags=GREETED))
    assert peer.receive()[0] == NO_SESSION
    peer.send(tell("never", "add", msgpack.packb({"amount": 1}), "counter", GREETED))
    assert peer.receive()[0] == NO_SESSION
    peer.greet()
    assert peer.call(2, entity="never", method="get", type_name="counter", flags=GREETED) == b"\0"


def test_a_repeated_hello_is_answered_with_the_same_session(peer):
    first = peer.greet(sender=4711)
    peer.call(1, flags=GREETED)
    again = peer.greet(sender=4711)
    assert again["session"] == first["session"]
    peer.call(2, flags=GREETED)
    peer.send(pack(PING, 0, None))
    assert peer.receive()[0] == PONG


def test_only_workers_may_send_what_workers_send(peer):
    peer.greet()
    for number, body in ((REPLY, [b""]), (72, ["counter", 1, []]), (73, [[["t", 4]]])):
        peer.send(pack(number, 0, "c", *body))
        assert peer.receive()[:4] == error(NOT_AUTHORISED, "c"), number
    peer.nothing_more()
