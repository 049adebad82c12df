"""Real shardbusd processes for tests, on free ports, and calls of shardbusctl.

Nothing here sleeps: it blocks on a line that a process prints, or on its end.
"""

import contextlib
import json
import os
import pathlib
import random
import selectors
import signal
import socket
import subprocess
import threading
import time

SOURCE = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BIN = pathlib.Path(os.environ.get("SHARDBUS_BIN_DIR", SOURCE / "build/release/bin"))
# Programs of a sanitizer's build take several times as long for all they do.
SLOWER = 5 if BIN.parent.name in ("asan", "tsan") else 1
PATIENCE = 30


def environment(**more):
    """Our own environment without SHARDBUS_*, which are for the tests and not for the programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHARDBUS_")}
    return {**kept, **more}


_given_ports = set()


def free_port():
    """Gives the first of three free ports in a row: what a node with a given address takes.

    They stay free while nobody listens there: the kernel does not choose them for others, since
    they lie below the range from which it takes ports for connections and for port 0.
    """
    while True:
        # In steps of three, so that what is given next cannot overlap.
        first = random.randrange(10000, 32000, 3)
        if first in _given_ports:
            continue
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + 3):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            _given_ports.add(first)
            return first


def read_line(stream, what, patience=PATIENCE):
    """Gives the next line of a pipe; fails if it ends or if none comes in time."""
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        if not selector.select(max(0, deadline - time.monotonic())):
            raise TimeoutError(f"{what} printed no line in {patience} s")
    line = stream.readline()
    assert line, f"{what} ended instead of printing a line"
    return line.rstrip("\n")


class Daemon:
    """One shardbusd. Use as a context manager; what still runs at its end is killed."""

    def __init__(self, *arguments, env=None, listen="tcp://127.0.0.1:0", **popen):
        command = [BIN / "shardbusd", "--listen", listen, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=env or environment(), **popen)
        self.fields = {}
        self._log = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _read_log(self):
        for line in self.process.stderr:
            with self._changed:
                self._log.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def ready(self):
        """Waits for the ready line; its fields are then in `fields`."""
        try:
            line = read_line(self.process.stdout, "shardbusd")
        except AssertionError as ended:
            raise AssertionError(f"{ended}: {self.log()}") from None
        assert line.startswith("ready "), line
        self.fields = dict(word.split("=", 1) for word in line.split()[1:])
        return self

    @property
    def address(self):
        return self.fields["listen"]

    def wait_for_log(self, text):
        """Waits for a log line with this text in it."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: self._ended or any(text in line for line in self._log), PATIENCE)
            assert found and any(text in line for line in self._log), "\n".join(self._log)

    def log(self):
        """Gives all of stderr, once the process has ended."""
        self._reader.join(PATIENCE)
        return "\n".join(self._log)

    def lines(self):
        """Gives the log so far."""
        with self._changed:
            return list(self._log)

    def send(self, number):
        """Of SIGSTOP: until the last of its threads stands still, or it has ended."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wait(self, patience=PATIENCE):
        """Gives the exit code."""
        return self.process.wait(patience)


def run_daemon(*arguments, env=None, **run):
    """Runs a shardbusd that is to end by itself."""
    return subprocess.run([BIN / "shardbusd", *arguments], capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=env or environment(), **run)


def ctl(*arguments, node=None, env=None, **run):
    """Runs shardbusctl."""
    where = ["--node", node] if node else []
    return subprocess.run([BIN / "shardbusctl", *where, *arguments], capture_output=True,
                          text=True, timeout=PATIENCE * 2, check=False,
                          env=env or environment(), **run)


def ctl_json(*arguments, node=None):
    """Runs shardbusctl --json, which has to succeed, and gives what it printed."""
    done = ctl("--json", *arguments, node=node)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
