"""Reads what the entities wrote down, and tells which of their lives overlap."""

import collections
import json
from typing import NamedTuple


class Note(NamedTuple):
    """One line of a witness; see ledger_worker.py."""

    what: str
    node: str
    pid: int
    entity: str
    life: int
    sender: str
    seq: int
    ns: int


class Overlap(NamedTuple):
    """Two lives of an entity that were at work at once."""

    entity: str
    older: str
    newer: str
    begin_ns: int
    end_ns: int

    @property
    def ms(self):
        return (self.end_ns - self.begin_ns) / 1e6

    def __str__(self):
        return (f"{self.entity}: {self.older} still at work {self.ms:.1f} ms after {self.newer} "
                "had begun")


def read(path, start=0):
    """Gives (notes from that byte on, the byte where the next reading starts)."""
    with open(path, "rb") as file:
        file.seek(start)
        text = file.read()
    whole = text[:text.rfind(b"\n") + 1]
    return [Note(*json.loads(line)) for line in whole.splitlines()], start + len(whole)


class Life:
    """One life of an entity: from its first to its last command, and how it began and ended."""

    def __init__(self, note):
        self.key = (note.pid, note.life)
        self.entity, self.node = note.entity, note.node
        self.start = note.ns
        self.first = self.last = None
        self.stopped = self.loaded = None
        self.handled = 0

    def __str__(self):
        return f"{self.node} (process {self.key[0]}, life {self.key[1]})"

    def add(self, note):
        if note.what == "handled":
            self.first = note.ns if self.first is None else self.first
            self.last = note.ns
            self.handled += 1
        elif note.what == "stop":
            self.stopped = note.ns
        elif note.what == "load":
            self.loaded = note.seq


def lives_of(notes, known=None):
    """Gives entity -> its lives in the order of their starts; goes on with those known before."""
    lives = known if known is not None else collections.defaultdict(list)
    by_key = {life.key: life for some in lives.values() for life in some}
    for note in sorted(notes, key=lambda note: note.ns):
        key = (note.pid, note.life)
        if key not in by_key:
            by_key[key] = Life(note)
            lives[note.entity].append(by_key[key])
        by_key[key].add(note)
    return lives


def overlaps(lives):
    """Yields where an older life began a command after a newer one had begun its first."""
    for entity, some in lives.items():
        busy = sorted((life for life in some if life.first is not None),
                      key=lambda life: life.first)
        for i, newer in enumerate(busy):
            for older in busy[:i]:
                if older.last > newer.first:
                    yield Overlap(entity, str(older), str(newer), newer.first, older.last)
