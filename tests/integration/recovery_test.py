"""A node whose seed is, at first, something else: zeromq.md section 5, test 13, connecting side.

At the address stands an HTTP server, a PUB socket, or what closes each connection; then the real
node appears there, and the joining node finds it by itself.
"""

import contextlib
import socket
import threading

import pytest
import zmq

from daemons import BIN, Daemon, ctl, ctl_json, free_port
from raw_peer import wait_until


class Impostor:
    """A TCP server that answers each connection in one way, and counts them."""

    def __init__(self, answer, port=0):
        self.connections = 0
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()


def http(connection):
    connection.settimeout(5)
    connection.recv(64)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def close(_):
    pass


def junk(connection):
    connection.sendall(b"\xff" * 512)


class Publisher:
    """A PUB socket: a ZMTP peer, but not of a type that anybody here may talk to."""

    def __init__(self, port):
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUB)
        self._socket.linger = 0
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED)
        self._socket.bind(f"tcp://127.0.0.1:{port}")
        self._seen = 0

    @property
    def connections(self):
        while self._monitor.poll(0):
            self._monitor.recv_multipart()
            self._seen += 1
        return self._seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.disable_monitor()
        self._monitor.close()
        self._socket.close()
        self._context.term()


def assert_echo(node, i):
    # Links that still greet anew end an ask in unknown_outcome; an echo may be repeated.
    def answered():
        done = ctl("ask", "echo", f"e{i}", "echo", str(i), node=node.address)
        return done.returncode == 0 and done.stdout

    assert wait_until(answered, "an echo").strip() == str(i)


IMPOSTORS = {"http": lambda port: Impostor(http, port), "close": lambda port: Impostor(close, port),
             "junk": lambda port: Impostor(junk, port), "pub": Publisher}


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_a_node_joins_when_the_real_seed_appears(kind):
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        with IMPOSTORS[kind](port) as impostor:
            joiner = stack.enter_context(Daemon("--name", "joiner", "--seeds", address))
            wait_until(lambda: impostor.connections >= 2, "it tries again")
        seed = stack.enter_context(Daemon("--name", "seed", listen=address))
        seed.ready()
        joiner.ready()
        assert len(ctl_json("members", node=joiner.address)) == 2
        # The names of the links, too: asks go both ways.
        for node in (seed, joiner):
            for i in range(20):
                assert_echo(node, i)


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_a_member_comes_back_when_something_else_had_its_ports(kind):
    # All three ports: the links of messages and of gossip meet the impostor too.
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(Daemon("--name", "other", "--stable-after", "60s",
                                           "--death-proof", "off"))
        other.ready()
        with Daemon("--name", "member", "--seeds", other.address, listen=address) as member:
            member.ready()
            assert member.address == address
        with contextlib.ExitStack() as fakes:
            all_of_them = [fakes.enter_context(IMPOSTORS[kind](port + i)) for i in range(3)]
            wait_until(lambda: all(fake.connections for fake in all_of_them[1:]), "it connects")
        again = stack.enter_context(Daemon("--name", "member", "--seeds", other.address,
                                           listen=address))
        again.ready()
        for node in (other, again):
            for i in range(20):
                assert_echo(node, i)
