"""A worker process: entities that write down all they do, outside the product.

Each line of the witness is a JSON array: what, node, pid, entity, life, sender, seq, time in ns.
`what` is start, load, stop or handled; `life` counts the entities that this process made.
"""

import argparse
import itertools
import json
import logging
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

TYPE, SHARDS = "ledger", 32


class Witness:
    """Appends lines to a file; each is one write, so processes may share it and be killed."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, *fields):
        line = json.dumps([*fields, time.monotonic_ns()], separators=(",", ":")) + "\n"
        os.write(self._file, line.encode())


def make_ledger(witness):
    """Gives the class of entities that write to this witness."""
    lives = itertools.count(1)
    never = threading.Event()

    @shardbus.host(TYPE, shards=SHARDS)
    class Ledger:
        """Knows the count of what it handled, and the last number of each sender."""

        def __init__(self, ctx):
            self._ctx = ctx
            self._life = next(lives)
            self._count = 0
            self._note("start")

        def _note(self, what, sender="", seq=0):
            witness.write(what, self._ctx.node, os.getpid(), self._ctx.id, self._life, sender, seq)

        def add(self, sender, seq, busy=0.0):
            """One command of a sender; `busy` is how many seconds it takes."""
            self._note("handled", sender, seq)
            if busy:
                time.sleep(busy)
            self._count += 1
            return [self._ctx.node, os.getpid(), self._life, self._count]

        def peek(self):
            return [self._ctx.node, self._count]

        def hang(self):
            """Never ends, as a handler that waits for a lock that nobody gives back."""
            self._note("handled", "hang", 0)
            never.wait()

        def save(self):
            self._note("stop", seq=self._count)
            return self._count

        def load(self, state):
            self._count = state
            self._note("load", seq=state)

    return Ledger


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", required=True)
    parser.add_argument("--witness", required=True)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    worker = shardbus.Worker(options.node, [make_ledger(Witness(options.witness))],
                             threads=options.threads)
    worker.start(timeout=30)
    print("ready", flush=True)
    worker.link.join()


if __name__ == "__main__":
    main()
