"""A client and a worker written from PROTOCOL.md alone: pyzmq and msgpack, no package of ours.

usage: raw_client.py ADDRESS [ADDRESS_OF_THE_WORKER]
       raw_client.py worker ADDRESS TYPE

Against one node, or two of one cluster, it asks the entity type `counter`, calls without a session,
uses a REQ socket, hosts the type `raw` and asks that. Prints one line per step; exit code 0 if all
went as documented. As a worker it hosts TYPE until it is killed; `hang` gets no answer from it.
"""

import random
import sys
import time

import msgpack
import zmq

TELL, ASK, REPLY, ERROR, HELLO, WELCOME, REJECT = 1, 2, 3, 4, 10, 11, 12
GOODBYE, PING, PONG, CREDIT, WHO, HERE, RELEASE, RELEASED = 14, 15, 16, 17, 19, 20, 71, 72
NO_SUCH_METHOD, UNKNOWN_KIND, NO_SESSION = 3, 11, 13
GREETED = 1
SECONDS = 10.0


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def unpack(data):
    return msgpack.unpackb(data, raw=False)


class Peer:
    """A DEALER with one session, or none."""

    def __init__(self, context, address):
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 1000)
        self.socket.connect(address)
        self.correlation = 0

    def send(self, *envelope):
        self.socket.send(pack(list(envelope)))

    def receive(self, *kinds):
        """Gives the next envelope of one of the kinds; answers PING, passes over the rest."""
        deadline = time.monotonic() + SECONDS
        while self.socket.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            envelope = unpack(self.socket.recv())
            if envelope[0] == PING:
                self.send(PONG, 0, None)
            elif envelope[0] in kinds:
                return envelope
        raise TimeoutError(f"no envelope of kind {kinds} within {SECONDS} s")

    def greet(self, role, **more):
        sender = random.randint(1, 2**53 - 1)
        self.send(HELLO, 0, None, {"version": [1, 0], "role": role, "sender": sender, **more})
        answer = self.receive(WELCOME, REJECT)
        assert answer[0] == WELCOME, f"rejected: {answer[3]}"
        return answer[3]

    def tell(self, type_name, entity, method, value, flags=GREETED):
        self.send(TELL, flags, None, type_name, entity.encode(), method, None, None, 0, 0, None,
                  pack(value))

    def send_ask(self, type_name, entity, method, value, flags=GREETED):
        self.correlation += 1
        self.send(ASK, flags, self.correlation, type_name, entity.encode(), method, None, None,
                  int(SECONDS * 1000), 0, None, pack(value))
        return self.correlation

    def answer_to(self, correlation):
        while True:
            answer = self.receive(REPLY, ERROR)
            if answer[2] == correlation:
                return answer

    def ask(self, type_name, entity, method, value=None, flags=GREETED):
        answer = self.answer_to(self.send_ask(type_name, entity, method, value, flags))
        assert answer[0] == REPLY, f"error {answer[3]}: {answer[4]}"
        return unpack(answer[3])


def say(text):
    print("ok -", text, flush=True)


def who(context, address):
    peer = Peer(context, address)
    peer.send(WHO, 0, None)
    name, _, key, front, *_ = peer.receive(HERE)[3]["node"]
    assert name and key, "a node has a name and a key"
    say(f"who: node {name} at {front}")


def without_session(context, address, entity):
    peer = Peer(context, address)
    peer.send(TELL, 0, None, "counter", entity, "add", None, None, 0, 0, None, pack({"amount": 1}))
    peer.correlation = 1
    peer.send(ASK, 0, 1, "counter", entity, "get")  # the short form; the id as str
    assert unpack(peer.answer_to(1)[3]) == 1, "tell, then ask, in order"
    say("tell and ask without HELLO")


def request_socket(context, address, entity):
    socket = context.socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    for number in range(3):
        socket.send(pack([ASK, 0, f"req-{number}", "counter", entity.encode(), "get"]))
        assert socket.poll(int(SECONDS * 1000)), "an answer to a REQ"
        kind, _, correlation, payload = unpack(socket.recv())
        assert (kind, correlation, unpack(payload)) == (REPLY, f"req-{number}", 1)
    socket.close()
    say("a REQ socket gets one answer per ask, with its correlation")


def greeted_without_session(context, address):
    peer = Peer(context, address)
    peer.send_ask("counter", "nobody", "get", None, flags=GREETED)
    peer.receive(NO_SESSION)
    say("the flag greeted without a session: NO_SESSION")


def client(context, address, entity):
    peer = Peer(context, address)
    welcome = peer.greet("client")
    assert welcome["credit"][0] > 0 and welcome["credit"][1] > 0, "some credit at the start"
    assert peer.ask("counter", entity, "get") == 1
    for _ in range(10):
        peer.tell("counter", entity, "add", {"amount": 2})
    assert peer.ask("counter", entity, "get") == 21, "ten tells, then an ask, in order"
    failed = peer.answer_to(peer.send_ask("counter", entity, "fly", None))
    assert failed[:1] + failed[3:4] == [ERROR, NO_SUCH_METHOD], failed
    peer.send(200, 0, 77)
    assert peer.answer_to(77)[3] == UNKNOWN_KIND
    peer.send(PING, 0, None)
    peer.receive(PONG)
    say("a session: tells, asks, errors, an unknown kind, ping")
    return peer


def serve_one(worker, finished):
    """Handles the next message of the worker: `say` answers with its payload in a list."""
    kind, _, correlation, type_name, entity, method, *rest = worker.receive(TELL, ASK)
    assert type_name == "raw", type_name
    if kind == ASK and method == "say":
        worker.send(REPLY, 0, correlation, pack([entity.decode(), unpack(rest[5])]))
    elif kind == ASK:
        worker.send(ERROR, 0, correlation, NO_SUCH_METHOD, method)
    worker.send(CREDIT, 0, None, finished + 16, (finished + 16) * 65536)


def host_a_type(context, address, peer):
    worker = Peer(context, address)
    worker.greet("worker", types=[["raw", 16]], credit=[16, 1 << 20])
    # A type that was offered just now is known to the asker's node at the latest when its first
    # shards are placed, so the first ask may wait for that.
    for number in range(40):  # more than the credit of the start
        correlation = peer.send_ask("raw", f"r{number % 5}", "say", number)
        serve_one(worker, number + 1)
        answer = peer.answer_to(correlation)
        assert answer[0] == REPLY and unpack(answer[3]) == [f"r{number % 5}", number], answer
    correlation = peer.send_ask("raw", "r1", "fly", None)
    serve_one(worker, 41)
    assert peer.answer_to(correlation)[3] == NO_SUCH_METHOD
    # Without it the node keeps its shards for it until it finds the connection closed.
    worker.send(GOODBYE, 0, None)
    say("a worker: 40 asks through its credit, and an error")


def run_worker(address, type_name):
    worker = Peer(zmq.Context(), address)
    worker.greet("worker", types=[[type_name, 16]], credit=[64, 1 << 22])
    print("hosting", flush=True)
    finished = 0
    while True:
        if not worker.socket.poll(1000):
            worker.send(PING, 0, None)
            continue
        kind, _, correlation, *rest = unpack(worker.socket.recv())
        if kind == PING:
            worker.send(PONG, 0, None)
        elif kind == RELEASE:
            worker.send(RELEASED, 0, None, *rest[:2], [])
        elif kind in (TELL, ASK):
            finished += 1
            worker.send(CREDIT, 0, None, finished + 64, (finished + 64) * 65536)
            if rest[2] == "hang":
                print("hanging", flush=True)
            elif kind == ASK:
                worker.send(REPLY, 0, correlation, pack([address, rest[1].decode()]))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "worker":
        return run_worker(*sys.argv[2:])
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    address = sys.argv[1]
    entity = f"raw-{random.randint(0, 2**53)}"
    context = zmq.Context()
    who(context, address)
    without_session(context, address, entity)
    request_socket(context, address, entity)
    greeted_without_session(context, address)
    host_a_type(context, sys.argv[-1], client(context, address, entity))
    context.destroy()


if __name__ == "__main__":
    main()
