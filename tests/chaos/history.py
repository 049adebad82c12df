"""Judges one round of a chaos run: what senders were told against what entities wrote down.

Pure: it gets the notes of the witness, the outcomes and the faults, and gives its findings.
"""

import collections
import json
from typing import NamedTuple, Optional

import witness

SECOND = 10**9  # times are in ns
LATE = 2.0  # seconds after its deadline at which an ask has to have ended
LIVES_KEPT = 6  # of each entity, for the next round
THAW = 0.5  # seconds in which a process that stood still may yet go on with what it had
NEAR = 6.0  # seconds around a partition in which a crash or exit counts as together with it


class Sent(NamedTuple):
    """One message: `epoch` and `epoch_after` count the sessions its sender had lost before."""

    sender: str
    type: str
    entity: str
    seq: int
    kind: str
    epoch: int
    epoch_after: int
    outcome: str
    may_have_happened: bool
    answer: object
    sent_ns: int
    ended_ns: int


class Fault(NamedTuple):
    """What was done: `cut` is a partition, `end` a crash or exit, `pause` a SIGSTOP."""

    what: str
    begin_ns: int
    end_ns: int
    cut: bool = False
    end: bool = False
    pause: bool = False


class Round(NamedTuple):
    """What is judged. In a planned round the senders in `protected` may lose nothing."""

    notes: list
    sent: list
    faults: list
    planned: bool = False
    protected: frozenset = frozenset()
    frozen: frozenset = frozenset()  # senders that stood still, whose asks may end late
    timeout: float = 8.0
    before: Optional[dict] = None  # lives of the rounds before
    seen: frozenset = frozenset()  # (sender, seq) that were handled in the round before


class Findings:
    """What broke, by rule; what is allowed and counted; the overlaps."""

    def __init__(self):
        self.broken = []
        self.counts = collections.Counter()
        self.overlaps = []

    def broke(self, rule, text):
        self.counts[f"broken.{rule}"] += 1
        if self.counts[f"broken.{rule}"] <= 5:
            self.broken.append(f"{rule}: {text}")


def read_sent(path, start=0):
    """Gives (messages from that byte on, the byte where the next reading starts)."""
    with open(path, "rb") as file:
        file.seek(start)
        text = file.read()
    whole = text[:text.rfind(b"\n") + 1]
    return [Sent(*json.loads(line)) for line in whole.splitlines()], start + len(whole)


def sender_process(sender):
    """Gives the name of the process of a sender: `s1` of `s12.3`, its second in the third round."""
    return sender.split(".")[0][:-1]


def _name(message):
    return f"{message.kind} {message.seq} of {message.sender} to {message.type}/{message.entity}"


def _check_ledger(this, handled, found):
    """Acknowledged is handled once, refused is not handled, and nothing is handled twice."""
    for (sender, seq), notes in handled.items():
        if len(notes) > 1 or (sender, seq) in this.seen:
            where = ", ".join(f"{note.node}/{note.pid}/{note.life}" for note in notes)
            found.broke("twice", f"{seq} of {sender} to {notes[0].entity} handled at {where}")
    for message in this.sent:
        if message.type != "ledger":
            continue
        notes = handled.get((message.sender, message.seq), [])
        if message.outcome == "reply":
            right = [note for note in notes if [note.pid, note.life] == message.answer[1:3]]
            if not right:
                found.broke("lost", f"{_name(message)} has a reply and was not handled")
        elif message.outcome != "sent" and not message.may_have_happened and notes:
            found.broke("lied", f"{_name(message)} ended in {message.outcome} and was handled")
        elif message.outcome == "sent":
            found.counts["tells_handled" if notes else "tells_lost"] += 1


def _check_counters(this, found):
    """A total is never more than was sent so far."""
    sent = collections.Counter()
    for message in sorted(this.sent, key=lambda message: (message.sender, message.seq)):
        if message.type != "counter":
            continue
        sent[message.entity] += 1
        if message.outcome == "reply" and not 1 <= message.answer <= sent[message.entity]:
            found.broke("twice", f"{_name(message)} gives {message.answer} after "
                        f"{sent[message.entity]} adds")
        exact = this.planned and sender_process(message.sender) in this.protected
        if exact and message.outcome == "reply" and message.answer < sent[message.entity]:
            found.broke("planned", f"{_name(message)} gives {message.answer} after "
                        f"{sent[message.entity]} adds")


def _check_planned(this, handled, found):
    for message in this.sent:
        if sender_process(message.sender) not in this.protected:
            continue
        if message.outcome not in ("reply", "sent"):
            found.broke("planned", f"{_name(message)} ended in {message.outcome}")
        elif (message.type == "ledger" and message.outcome == "sent"
              and (message.sender, message.seq) not in handled):
            found.broke("planned", f"{_name(message)} was lost")


def _check_asks(this, found):
    """Each ask has one end, in time."""
    seen = set()
    last = collections.Counter()
    for message in this.sent:
        key = (message.sender, message.seq)
        if key in seen:
            found.broke("ask", f"{_name(message)} ended twice")
        seen.add(key)
        last[message.sender] = max(last[message.sender], message.seq)
        took = (message.ended_ns - message.sent_ns) / SECOND
        if took > this.timeout + LATE and sender_process(message.sender) not in this.frozen:
            found.broke("ask", f"{_name(message)} took {took:.1f} s")
        found.counts[f"{message.kind}.{message.outcome}"] += 1
        if message.kind == "ask":
            found.counts["longest_ask_ms"] = max(found.counts["longest_ask_ms"], int(took * 1000))
    for sender, most in last.items():
        for seq in range(1, most + 1):
            if (sender, seq) not in seen:
                found.broke("ask", f"{seq} of {sender} never ended")


def _firm_epochs(messages):
    """Gives seq -> epoch for those of one sender and entity that surely went by that session.

    An ask with a reply and no lost session in between did; and so did what was sent before it.
    """
    firm, epoch = {}, None
    for message in sorted(messages, key=lambda message: -message.seq):
        if message.outcome == "reply" and message.epoch == message.epoch_after:
            epoch = message.epoch
        if epoch is not None and message.epoch == epoch:
            firm[message.seq] = epoch
    return firm


def _check_order(this, handled, found):
    by_pair = collections.defaultdict(list)
    for message in this.sent:
        if message.type == "ledger":
            by_pair[message.sender, message.entity].append(message)
    for (sender, entity), messages in by_pair.items():
        firm = _firm_epochs(messages)
        notes = [note for message in messages for note in handled.get((sender, message.seq), [])]
        most = {}  # by epoch; None for all
        for note in sorted(notes, key=lambda note: note.ns):
            epoch = firm.get(note.seq)
            if epoch is not None and note.seq < most.get(epoch, 0):
                found.broke("order", f"{entity} handled {note.seq} of {sender} after {most[epoch]}")
            elif note.seq < most.get(None, 0):
                found.counts["reordered_over_sessions"] += 1
            for key in (None, epoch) if epoch is not None else (None,):
                most[key] = max(most.get(key, 0), note.seq)


def _together(overlap, faults):
    """Whether a partition and a crash or exit come together around an overlap."""
    near = int(NEAR * SECOND)

    def at(fault):
        return fault.begin_ns - near < overlap.end_ns and overlap.begin_ns < fault.end_ns + near

    return (any(fault.cut and at(fault) for fault in faults)
            and any(fault.end and at(fault) for fault in faults))


def _thawing(overlap, faults):
    """Whether a frozen process was taken over, and the overlap ends soon after it goes on.

    A worker does not know that its node stands still, nor that it stood still itself, before it
    hears from the node; half a second is what it gets for that.
    """
    return any(fault.pause and fault.begin_ns < overlap.begin_ns
               and overlap.end_ns < fault.end_ns + THAW * SECOND for fault in faults)


def _check_owners(this, lives, found):
    begin = min((message.sent_ns for message in this.sent), default=0)
    for overlap in witness.overlaps(lives):
        if overlap.end_ns < begin:
            continue  # told in the round in which it was
        found.overlaps.append(overlap)
        if _together(overlap, this.faults):
            found.counts["overlaps_documented"] += 1
        elif _thawing(overlap, this.faults):
            found.counts["overlaps_frozen"] += 1
        else:
            found.broke("owner", str(overlap))


def _check_states(this, lives, found):
    """In a planned round no entity begins anew that had handled anything."""
    begin = min((message.sent_ns for message in this.sent), default=0)
    for some in lives.values():
        for old, new in zip(some, some[1:]):
            if new.start < begin or new.loaded is not None or not old.handled:
                continue
            found.counts["states_lost"] += 1
            # One that was idle may have been dropped by a fault of the round before.
            if this.planned and max(old.last, old.stopped or 0) >= begin:
                found.broke("planned", f"{new.entity} lost its state between {old} and {new}")


def judge(this):
    """Gives (findings, lives for the next round, what was handled)."""
    found = Findings()
    lives = witness.lives_of(this.notes, this.before)
    handled = collections.defaultdict(list)
    for note in this.notes:
        if note.what == "handled":
            handled[note.sender, note.seq].append(note)
    _check_ledger(this, handled, found)
    _check_counters(this, found)
    if this.planned:
        _check_planned(this, handled, found)
    _check_asks(this, found)
    _check_order(this, handled, found)
    _check_owners(this, lives, found)
    _check_states(this, lives, found)
    kept = collections.defaultdict(list, {entity: some[-LIVES_KEPT:]
                                          for entity, some in lives.items()})
    return found, kept, frozenset(handled)
