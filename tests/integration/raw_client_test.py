"""The raw client and worker against real brokers: one, or three that need not own anything."""

import contextlib
import pathlib
import subprocess
import sys
import time

import msgpack
import pytest

from daemons import BIN, Daemon, ctl, environment, read_line
from raw_peer import ERROR, GREETED, REPLY, RawPeer, ask, wait_until

HERE = pathlib.Path(__file__).parent
UNKNOWN_OUTCOME = 2


@contextlib.contextmanager
def cluster(count):
    with contextlib.ExitStack() as stack:
        nodes = []
        for i in range(count):
            seeds = ["--seeds", nodes[0].address] if nodes else []
            nodes.append(stack.enter_context(Daemon("--name", f"raw-{i}", *seeds)).ready())
        done = ctl("--timeout", "20s", "wait", "--members", str(count), node=nodes[0].address)
        assert done.returncode == 0, done.stderr
        yield nodes


@contextlib.contextmanager
def worker(node, type_name):
    """A worker process that hosts the type; it is killed at the end."""
    process = subprocess.Popen([sys.executable, HERE / "raw_client.py", "worker", node.address,
                                type_name], stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert read_line(process.stdout, "worker") == "hosting"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("count", [1, 3])
def test_raw_client(count):
    with cluster(count) as nodes:
        for node in nodes:
            done = subprocess.run([sys.executable, HERE / "raw_client.py", node.address,
                                   nodes[0].address], capture_output=True, text=True, timeout=90,
                                  check=False)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("count,asked", [(1, 0), (3, 0), (3, 2)])
def test_a_worker_killed_in_mid_message_ends_its_asks_and_another_takes_over(count, asked):
    def call(client, i, method="say"):
        client.send(ask(i, f"r{i % 20}", method, type_name="raw", flags=GREETED))
        return client.receive(REPLY, ERROR)

    with cluster(count) as nodes, worker(nodes[0], "raw") as first, \
            RawPeer(nodes[asked].address) as client:
        client.greet()
        for i in range(20):
            answer = call(client, i)
            assert answer[:3] == [REPLY, 0, i], answer
            assert msgpack.unpackb(answer[3]) == [nodes[0].address, f"r{i}"]
        client.send(ask(99, "r5", "hang", type_name="raw", flags=GREETED))
        assert read_line(first.stdout, "worker") == "hanging"
        first.kill()
        begin = time.monotonic()
        answer = client.receive(REPLY, ERROR)
        assert answer[:4] == [ERROR, 0, 99, UNKNOWN_OUTCOME]
        assert time.monotonic() - begin < 2  # not at its timeout of 10 s
        elsewhere = nodes[1 % count]
        with worker(elsewhere, "raw"):
            for i in range(20):
                answer = wait_until(lambda i=i: (found := call(client, i))[0] == REPLY and found,
                                    f"r{i} answers elsewhere")
                assert msgpack.unpackb(answer[3]) == [elsewhere.address, f"r{i}"]
