"""The judge of answers, on answers that were made up."""

from answers import BASE, Answer, overlaps, repeated, reported_overlaps


def answer(entity, total, at_ms):
    return Answer(entity, "a", total, "" if total is not None else "Timeout", total is None, 0,
                  at_ms * 1_000_000)


def test_a_first_life_that_answers_after_the_second_one_is_an_overlap():
    answers = [answer("x", BASE + 1, 10), answer("x", 1, 20), answer("x", BASE + 2, 25),
               answer("y", BASE + 1, 10), answer("y", None, 15), answer("y", 1, 20)]
    assert overlaps(answers) == {"x": 5.0}


def test_what_was_under_way_when_its_owner_stood_still_is_none():
    late = answer("x", BASE + 1, 25)
    assert not overlaps([late, answer("x", 1, 20)], since=1)
    assert overlaps([late._replace(sent_ns=2), answer("x", 1, 20)], since=1) == {"x": 5.0}


def test_a_life_that_answers_last_or_alone_is_none():
    assert not overlaps([answer("x", BASE + 1, 10), answer("x", 1, 11), answer("y", 1, 1),
                         answer("z", BASE + 7, 5)])


def test_two_lives_that_both_count_from_zero_give_a_total_twice():
    assert repeated([answer("x", 1, 1), answer("x", 2, 2), answer("y", 1, 2)]) == []
    assert repeated([answer("x", 1, 1), answer("x", 1, 2)]) == ["x gave 1 2 times"]


def test_what_a_node_tells_of_overlaps_is_read_with_its_length():
    lines = ["12:00:00.000Z warn  owner.overlap node=n5 160 shards may have had two owners for at "
             "most 3025.71ms: minority",
             "12:00:00.000Z warn  owner.overlap node=n5 1 shards may have had two owners for at "
             "most 640ms: the others removed this node",
             "12:00:00.000Z info  membership.change node=n5 x"]
    assert reported_overlaps(lines) == [(160, 3025.71), (1, 640.0)]
