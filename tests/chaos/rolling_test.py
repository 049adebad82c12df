"""Rolling restarts under load: counters keep their count, in no database but the nodes' memory.

SHARDBUS_COUNTERS and SHARDBUS_RESTARTS make it larger: 10000 counters and 50 restarts of all three
nodes take about five minutes.
"""

import contextlib
import os
import pathlib
import signal
import sys
import threading

from daemons import SOURCE, Daemon, ctl, free_port

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

COUNTERS = int(os.environ.get("SHARDBUS_COUNTERS", "500"))
RESTARTS = int(os.environ.get("SHARDBUS_RESTARTS", "2"))
NAMES = ("a", "b", "c")
WINDOW = 500  # asks in flight


def add_to_all(address):
    """Adds 1 to every counter; gives what each of them says then."""
    with shardbus.connect(address) as bus:
        counters = [bus.entity("counter", f"c{n}") for n in range(COUNTERS)]
        values = []
        for begin in range(0, COUNTERS, WINDOW):
            asks = [counter.ask_future("add", {"amount": 1}, timeout=30)
                    for counter in counters[begin:begin + WINDOW]]
            values += [ask.result(40) for ask in asks]
        return values


class Adding(threading.Thread):
    """One add to every counter, beside what the test does."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self._address = address
        self._values = self._error = None
        self.start()

    def run(self):
        try:
            self._values = add_to_all(self._address)
        except Exception as error:
            self._error = error

    def result(self):
        self.join()
        if self._error is not None:
            raise self._error
        return self._values


def test_counters_keep_their_count_through_rolling_restarts():
    addresses = {name: f"tcp://127.0.0.1:{free_port()}" for name in NAMES}

    def start(name):
        return Daemon("--name", name, "--seeds", ",".join(addresses.values()),
                      listen=addresses[name])

    with contextlib.ExitStack() as stack:
        nodes = {name: stack.enter_context(start(name)) for name in NAMES}
        for node in nodes.values():
            node.ready()
        rounds = 0
        for _ in range(RESTARTS):
            for index, name in enumerate(NAMES):
                other = addresses[NAMES[(index + 1) % len(NAMES)]]
                adding = Adding(other)
                gone = nodes[name]
                gone.send(signal.SIGTERM)
                assert gone.wait(30) == 0, gone.log()
                nodes[name] = stack.enter_context(start(name)).ready()
                rounds += 1
                assert adding.result() == [rounds] * COUNTERS, "\n".join(
                    line for node in [gone, *nodes.values()] for line in node.lines())
                done = ctl("--timeout", "20s", "wait", "--members", "3", node=other)
                assert done.returncode == 0, done.stderr
        assert add_to_all(addresses["b"]) == [rounds + 1] * COUNTERS
