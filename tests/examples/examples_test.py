"""Runs every example."""

import signal
import subprocess
import sys

from daemons import BIN, SOURCE, Daemon, ctl, ctl_json, environment, read_line


def run(name):
    return subprocess.run([BIN / f"example_{name}"], capture_output=True, text=True, timeout=60,
                          check=False, env=environment())


def test_counter():
    done = run("counter")
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_chat_room_answers_the_asker_from_the_other_node():
    done = run("chat_room")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["1 in the lobby", "ada on users, asked in lobby: pong",
                                        "nobody here is called bob"]


class Helper:
    """A program that serves a cluster until SIGTERM."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env=environment())

    def __enter__(self):
        assert read_line(self.process.stdout, "the example").startswith("ready")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def test_host_joins_and_leaves():
    with Daemon("--name", "a") as broker:
        node = broker.ready().address
        with Helper(BIN / "example_host", "--seed", node, "--cluster", "shardbus") as host:
            assert ctl("wait", "--members", "2", "--type", "account", node=node).returncode == 0
            assert ctl_json("ask", "account", "x", "deposit", '{"amount": 5}', node=node) == {
                "reply": 5}
            done = ctl("ask", "account", "x", "withdraw", '{"amount": 6}', node=node)
            assert done.returncode == 4 and "the balance is too low" in done.stderr
            assert ctl_json("ask", "account", "x", "balance", node=node) == {"reply": 5}
            assert host.stop() == 0


def test_python_worker_hosts_carts():
    with Daemon("--name", "a") as broker:
        node = broker.ready().address
        worker = SOURCE / "examples/python_worker/worker.py"
        with Helper(sys.executable, worker, "--node", node) as helper:
            assert ctl("wait", "--type", "cart", node=node).returncode == 0
            for total in (3, 6):
                assert ctl_json("ask", "cart", "c", "add", '{"amount": 3}', node=node) == {
                    "reply": total}
            done = ctl("ask", "cart", "c", "explode", node=node)
            assert done.returncode == 1 and "no_such_method" in done.stderr
            assert helper.stop() == 0
