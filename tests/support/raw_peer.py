"""Peers of a broker that speak raw frames, right or wrong, and one way to wait for a condition."""

import contextlib
import os
import random
import socket
import time

import msgpack
import zmq
from zmq.utils.monitor import recv_monitor_message

GREETED = 1
TELL, ASK, REPLY, ERROR, HELLO, WELCOME, REJECT, NO_SESSION = 1, 2, 3, 4, 10, 11, 12, 13
PING, PONG, CREDIT, LINK, WHO, HERE = 15, 16, 17, 18, 19, 20
PATIENCE = 20.0
GREETING = (b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def wait_until(condition, what, patience=PATIENCE):
    """Polls until the condition gives something true, and gives that. Fails at its deadline."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.02)  # the one pause between two looks


def pack(*envelope):
    return msgpack.packb(list(envelope), use_bin_type=True)


def ask(correlation, entity="x", method="echo", payload=b"\xc0", type_name="echo", flags=0):
    return pack(ASK, flags, correlation, type_name, entity.encode(), method, None, None, 10000, 0,
                None, payload)


def tell(entity="x", method="echo", payload=b"\xc0", type_name="echo", flags=0):
    return pack(TELL, flags, None, type_name, entity.encode(), method, None, None, 0, 0, None,
                payload)


# What the thread sanitizer keeps of each byte that was ever touched, beside the byte.
SHADOW = 4 if os.environ.get("SHARDBUS_SANITIZER") == "thread" else 1


def resident(pid):
    """Gives the resident memory of a process in bytes, without the shadow of a sanitizer."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return (int(line.split()[1]) << 10) // SHADOW
    raise AssertionError("no VmRSS")


def descriptors(pid):
    """Gives how many files and sockets a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def closed_by_other(connection, patience=PATIENCE):
    """Reads until the other side closes a TCP connection; gives what came. Fails if it does not."""
    connection.settimeout(patience)
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            part = connection.recv(65536)
            if not part:
                break
            got += part
    return got


def tcp(address):
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), PATIENCE)


def zmtp(address):
    """Opens a TCP connection that has greeted as a DEALER."""
    connection = tcp(address)
    connection.sendall(GREETING + READY)
    got = b""
    while b"READY" not in got:
        part = connection.recv(4096)
        assert part, "closed in the handshake"
        got += part
    return connection


class RawPeer:
    """A DEALER, or another socket, that sends what it is told to. Use as a context manager."""

    def __init__(self, address, kind=zmq.DEALER, **options):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.linger = 0
        for name, value in options.items():
            self.socket.setsockopt(getattr(zmq, name), value)
        self.monitor = self.socket.get_monitor_socket(
            zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        self.socket.connect(address)
        self._left = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()
        self.context.term()

    def send(self, *parts, **more):
        self.socket.send_multipart(list(parts), **more)

    def next_parts(self, patience=PATIENCE):
        assert self.socket.poll(int(patience * 1000)), f"nothing came in {patience} s"
        return self.socket.recv_multipart()

    def receive(self, *kinds, patience=PATIENCE):
        """Gives the next envelope of one of the kinds (all but CREDIT and PING, if none)."""
        deadline = time.monotonic() + patience
        while True:
            while self._left:
                envelope = self._left.pop(0)
                if envelope[0] == PING:
                    self.send(pack(PONG, 0, None))
                if envelope[0] in kinds or not kinds and envelope[0] not in (PING, CREDIT):
                    return envelope
            parts = self.next_parts(max(0.0, deadline - time.monotonic()))
            unpacker = msgpack.Unpacker(raw=False, unicode_errors="replace",
                                        max_buffer_size=4 << 20)
            unpacker.feed(parts[-1])
            self._left = list(unpacker)

    def is_cut(self, patience=PATIENCE):
        """Waits until the connection is closed."""
        assert self.monitor.poll(int(patience * 1000)), f"still connected after {patience} s"
        return recv_monitor_message(self.monitor)["event"]

    def greet(self, role="client", **more):
        fields = {"version": [1, 0], "role": role, "sender": random.randint(1, 2**53 - 1), **more}
        self.send(pack(HELLO, 0, None, fields))
        answer = self.receive(WELCOME, REJECT)
        assert answer[0] == WELCOME, answer
        return answer[3]

    def call(self, correlation, **more):
        """Asks, and gives the payload of the reply."""
        self.send(ask(correlation, **more))
        answer = self.receive(REPLY, ERROR, NO_SESSION)
        assert answer[0] == REPLY and answer[2] == correlation, answer
        return answer[3]

    def nothing_more(self):
        """Checks that no answer is on its way: what is asked now is answered first."""
        self.send(ask("nothing-more", payload=b"\x01"))
        answer = self.receive()
        assert answer[:3] == [REPLY, 0, "nothing-more"], answer
