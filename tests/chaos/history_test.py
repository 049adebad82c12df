"""The judge of chaos runs, against small histories that are right, or wrong in one way each."""

import pytest

import history
from history import SECOND, Fault, Round, Sent
from witness import Note


def note(at, seq, what="handled", node="n1", pid=1, life=1, sender="s11.1", entity="e1"):
    return Note(what, node, pid, entity, life, sender, seq, at * SECOND)


def sent(at, seq, outcome="reply", kind="ask", pid=1, life=1, **more):
    answer = ["n1", pid, life, seq] if outcome == "reply" else None
    fields = {"epoch": 0, "epoch_after": 0, "may_have_happened": False, "answer": answer,
              "sent_ns": at * SECOND, "ended_ns": at * SECOND + SECOND // 2, **more}
    return Sent("s11.1", "ledger", "e1", seq, kind, outcome=outcome, **fields)


START = note(0, 0, "start")


def judge(notes, messages, faults=(), **more):
    found, _, _ = history.judge(Round(list(notes), list(messages), list(faults), **more))
    return found


def rules(found):
    return {text.split(":")[0] for text in found.broken}


def test_a_right_history_holds():
    found = judge([START, note(1, 1), note(2, 2), note(3, 3)],
                  [sent(1, 1), sent(2, 2, "sent", "tell"), sent(3, 3)], planned=True,
                  protected=frozenset({"s1"}))
    assert not found.broken and found.counts["tells_handled"] == 1


@pytest.mark.parametrize("rule, notes, messages", [
    ("lost", [], [sent(1, 1)]),
    ("lost", [note(1, 1, life=2)], [sent(1, 1)]),
    ("twice", [note(1, 1), note(2, 1)], [sent(1, 1)]),
    ("lied", [note(1, 1)], [sent(1, 1, "Overloaded")]),
    ("order", [note(1, 2), note(2, 1)], [sent(1, 1), sent(2, 2)]),
    ("ask", [note(2, 2)], [sent(2, 2)]),
    ("ask", [note(1, 1)], [sent(1, 1), sent(1, 1)]),
    ("ask", [note(1, 1)], [sent(1, 1, ended_ns=20 * SECOND)])])
def test_each_rule_is_noticed(rule, notes, messages):
    assert rules(judge([START, *notes], messages)) == {rule}


def test_what_was_handled_in_the_round_before_is_not_handled_again():
    found = judge([START, note(1, 1)], [sent(1, 1)], seen=frozenset({("s11.1", 1)}))
    assert rules(found) == {"twice"}


def test_unknown_outcome_may_have_been_handled_or_not():
    unknown = sent(1, 1, "UnknownOutcome", may_have_happened=True)
    for notes in ([], [note(1, 1)]):
        assert not judge([START, *notes], [unknown]).broken


def test_order_is_not_promised_over_a_lost_session():
    messages = [sent(1, 1, "UnknownOutcome", may_have_happened=True, epoch_after=1),
                sent(2, 2, epoch=1, epoch_after=1)]
    found = judge([START, note(3, 2), note(4, 1)], messages)
    assert not found.broken and found.counts["reordered_over_sessions"] == 1


@pytest.mark.parametrize("message", [sent(1, 1, "UnknownOutcome", may_have_happened=True),
                                     sent(1, 1, "sent", "tell")])
def test_in_a_planned_round_protected_senders_lose_nothing(message):
    protected = {"planned": True, "protected": frozenset({"s1"})}
    assert rules(judge([START], [message], **protected)) == {"planned"}
    assert not judge([START], [message], planned=True, protected=frozenset({"s2"})).broken


TWO_LIVES = [note(0, 0, "start"), note(1, 1), note(2, 0, "start", "n2", 2), note(3, 2, pid=2),
             note(5, 3)]
THREE = [sent(1, 1), sent(3, 2, pid=2), sent(5, 3)]


def test_two_owners_at_work_at_once_break_the_promise():
    found = judge(TWO_LIVES, THREE)
    assert rules(found) == {"owner"} and [one.ms for one in found.overlaps] == [2000]


def test_one_after_the_other_is_no_overlap():
    found = judge([*TWO_LIVES[:4], note(5, 3, pid=2)], [*THREE[:2], sent(5, 3, pid=2)])
    assert not found.overlaps


def test_a_partition_with_a_crash_may_overlap_and_is_counted():
    cut, end = (Fault("cut", 2 * SECOND, 4 * SECOND, cut=True),
                Fault("kill", 2 * SECOND, 3 * SECOND, end=True))
    found = judge(TWO_LIVES, THREE, [cut, end])
    assert not found.broken and found.counts["overlaps_documented"] == 1
    for alone in ([cut], [end]):
        assert rules(judge(TWO_LIVES, THREE, alone)) == {"owner"}


def test_a_frozen_process_may_go_on_for_half_a_second_and_is_counted():
    def frozen_until(ns):
        return [Fault("stop", SECOND + 1, ns, pause=True)]

    found = judge(TWO_LIVES, THREE, frozen_until(5 * SECOND - SECOND // 4))
    assert not found.broken and found.counts["overlaps_frozen"] == 1
    assert rules(judge(TWO_LIVES, THREE, frozen_until(4 * SECOND))) == {"owner"}


@pytest.mark.parametrize("loaded, broken", [(True, set()), (False, {"planned"})])
def test_in_a_planned_round_state_travels(loaded, broken):
    notes = [START, note(1, 1), note(2, 1, "stop"), note(3, 0, "start", "n2", 2)]
    notes += [note(3, 1, "load", "n2", 2)] if loaded else []
    found = judge([*notes, note(4, 2, pid=2)], [sent(1, 1), sent(4, 2, pid=2)], planned=True)
    assert rules(found) == broken


def test_counters_never_show_more_than_was_sent():
    messages = [sent(1, 1)._replace(type="counter", answer=1),
                sent(2, 2)._replace(type="counter", answer=3)]
    assert rules(judge([], messages)) == {"twice"}
