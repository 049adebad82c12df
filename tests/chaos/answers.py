"""Asks many counters all the time through chosen nodes, and tells whether two owners answered.

A counter begins with BASE and every ask adds one, so each reply tells which life of the counter
gave it: the first one has totals above BASE, and who took over without its state counts from zero.
"""

import collections
import re
import threading
import time
from typing import NamedTuple

import shardbus

BASE = 1_000_000
TIMEOUT = 8.0  # seconds of each ask, so that what a node answers late is seen, too
RATE = 600  # asks a second through each node; each of 60 counters is asked every 100 ms
WINDOW = 8  # asks of one counter at a time
OVERLAP = re.compile(r"owner\.overlap .*?(\d+) shards may have had two owners for at most "
                     r"([\d.]+)ms: ")


class Answer(NamedTuple):
    """What became of one ask; `total` is None where it ended in an error."""

    entity: str
    via: str
    total: object
    error: str
    may_have_happened: bool
    sent_ns: int
    ended_ns: int

    @property
    def old(self):
        return self.total is not None and self.total >= BASE

    @property
    def new(self):
        return self.total is not None and self.total < BASE


class Asker(threading.Thread):
    """Asks all entities through one node in turn; waits for none, but asks no more than WINDOW."""

    def __init__(self, name, address, entities, timeout=TIMEOUT, rate=RATE):
        super().__init__(name=name, daemon=True)
        self._bus = shardbus.Client([address], name=name)
        self._bus.link.wait_welcome(20)
        self._entities = list(entities)
        self._timeout, self._pause = timeout, 1 / rate
        self._changed = threading.Condition()
        self._stopping = False
        self._open = collections.Counter()  # of each entity
        self.answers = []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._bus.close()

    def run(self):
        while True:
            for entity in self._entities:
                with self._changed:
                    # The load is paced; `stop` ends the pause.
                    if self._changed.wait_for(lambda: self._stopping, self._pause):
                        return
                    if self._open[entity] == WINDOW:
                        continue
                    self._open[entity] += 1
                self._ask(entity)

    def _ask(self, entity):
        begin = time.monotonic_ns()
        try:
            future = self._bus.entity("counter", entity).ask_future("add", {"amount": 1},
                                                                    timeout=self._timeout)
        except shardbus.ShardbusError as error:
            self._ended(entity, begin, error, None)
            return
        future.add_done_callback(lambda done: self._ended(
            entity, begin, done.exception(), None if done.exception() else done.result()))

    def _ended(self, entity, begin, error, total):
        answer = Answer(entity, self.name, total, type(error).__name__ if error else "",
                        bool(error and error.may_have_happened), begin, time.monotonic_ns())
        with self._changed:
            self.answers.append(answer)
            self._open[entity] -= 1
            self._changed.notify_all()

    def stop(self):
        """Asks nothing more, and waits until all that was asked has ended. Gives all answers."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.join()
        with self._changed:
            assert self._changed.wait_for(lambda: not any(self._open.values()),
                                          self._timeout + 2), f"asks never ended: {self._open}"
            return list(self.answers)

    def so_far(self):
        with self._changed:
            return list(self.answers)


def begin_counters(address, entities):
    """Makes the first life of each counter, which begins with BASE."""
    with shardbus.connect(address) as bus:
        asks = [bus.entity("counter", one).ask_future("add", {"amount": BASE}, timeout=20)
                for one in entities]
        assert [ask.result() for ask in asks] == [BASE] * len(asks)


def by_entity(answers):
    found = collections.defaultdict(list)
    for answer in answers:
        found[answer.entity].append(answer)
    return found


def overlaps(answers, since=0):
    """Gives entity -> ms by which its first life answered after its second one had.

    Left out are answers to what was asked before `since`: when a process was stopped they may have
    been on their way already, in its buffers, and tell nothing of what it did after it went on.
    """
    found = {}
    for entity, some in by_entity(answers).items():
        last_old = max((one.ended_ns for one in some if one.old and one.sent_ns >= since),
                       default=0)
        first_new = min((one.ended_ns for one in some if one.new), default=None)
        if first_new is not None and last_old > first_new:
            found[entity] = (last_old - first_new) / 1e6
    return found


def repeated(answers):
    """Gives the totals that were given twice: a third life, or two of one kind at once."""
    seen = collections.Counter((one.entity, one.total) for one in answers if one.total is not None)
    return [f"{entity} gave {total} {count} times"
            for (entity, total), count in seen.items() if count > 1]


def reported_overlaps(lines):
    """Gives (shards, ms) of each overlap that a node tells in its log."""
    found = [OVERLAP.search(line) for line in lines]
    return [(int(one[1]), float(one[2])) for one in found if one]
