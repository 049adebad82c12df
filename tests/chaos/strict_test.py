"""Strict types when owners are frozen, killed or drained; available ones where that is compared.

All asks go to the built-in counters, as workers cannot host strict types.
"""

import contextlib
import re
import signal
import time

import pytest

from answers import BASE, Asker, begin_counters, by_entity, overlaps, repeated
from cluster import FAILURE_TIMEOUT, pause
from counters import (COUNTERS, REHOMED, SHARDS, all_taken_over, check_owners,
                      every_counter_answers, gaps, owned_by, strict_cluster)
from daemons import ctl, ctl_json
from raw_peer import wait_until
from shardbus import shard_of


@pytest.mark.parametrize("consistency", ["strict", "available"])
def test_a_frozen_owner_answers_nothing_once_the_others_have_taken_over(tmp_path, consistency):
    with strict_cluster(3, tmp_path, None, consistency) as cluster, contextlib.ExitStack() as stack:
        frozen, other = cluster[3], cluster[1]
        counters = owned_by(cluster, {"n3"}, other)
        begin_counters(other.address, COUNTERS)
        asks_frozen = stack.enter_context(Asker("frozen", frozen.address, COUNTERS))
        asks_other = stack.enter_context(Asker("other", other.address, COUNTERS))
        pause(0.5)
        stack.callback(frozen.send, signal.SIGCONT)
        frozen.freeze()
        frozen_ns = time.monotonic_ns()
        begin = time.monotonic()
        wait_until(lambda: all_taken_over(asks_other, counters), "all are taken over", REHOMED)
        taken_over = time.monotonic() - begin
        pause(max(0, 4 - taken_over))
        frozen.send(signal.SIGCONT)
        wait_until(lambda: cluster.agree(cluster.members), "all three agree", 30)
        cluster.wait_whole()
        answers = asks_frozen.stop() + asks_other.stop()
        every_counter_answers(cluster)
        print(f"{len(counters)} counters taken over after {taken_over:.1f} s; silent for "
              f"{gaps(answers, counters)}")
        assert {one.entity for one in answers if one.new} == counters
        check_owners(consistency, answers, dict.fromkeys(counters, "n3"),
                     {"n3": frozen.daemon.lines()}, frozen_ns)


def test_one_of_three_killed_is_taken_over_within_the_lease(tmp_path):
    with strict_cluster(3, tmp_path) as cluster:
        counters = owned_by(cluster, {"n3"}, cluster[1])
        begin_counters(cluster[1].address, COUNTERS)
        with Asker("other", cluster[1].address, COUNTERS) as asker:
            pause(0.5)
            begin = time.monotonic()
            cluster[3].kill()
            wait_until(lambda: all_taken_over(asker, counters), "all are taken over", REHOMED)
            took = time.monotonic() - begin
            answers = asker.stop()
        errors = {one.error for one in answers if one.error and one.entity not in counters}
        assert not errors, f"from counters of nodes that live: {errors}"
        print(f"{len(counters)} counters of the dead node answered after {took:.2f} s")
        assert {one.entity for one in answers if one.new} == counters
        assert not overlaps(answers) and not repeated(answers)
        assert took < 1 + FAILURE_TIMEOUT + 1  # the lease, what a proof may need, and some load


def test_one_of_four_killed_leaves_a_majority_that_needs_no_operator(tmp_path):
    with strict_cluster(4, tmp_path) as cluster:
        cluster[4].kill()
        wait_until(lambda: cluster.settled(cluster.alive), "the three others serve", REHOMED)
        assert not evidence_of(cluster[1])
        every_counter_answers(cluster)


def test_the_last_of_three_stops_until_an_operator_confirms(tmp_path):
    with strict_cluster(3, tmp_path) as cluster:
        last = cluster[1]
        begin_counters(last.address, COUNTERS)
        with Asker("last", last.address, COUNTERS, timeout=1) as asker:
            pause(0.5)
            cluster[2].kill()
            cluster[3].kill()
            killed_ns = time.monotonic_ns()
            status = wait_until(lambda: evidence_of(last), "removal by evidence alone", 15)
            assert status["state"] == "up" and status["authority"] != "full", status
            # The removal of the first one may have counted in full before the second one died.
            said = re.compile("strict types wait: (n2, n3 were|n3 was) removed by evidence alone; "
                              "`shardbusctl confirm` if (they are|it is) gone for good")
            why = wait_until(
                lambda: said.fullmatch(ctl_json("status", node=last.address)["why"]), "why", 15)[0]
            owners = {row[1] for row in ctl_json("shards", "--type", "counter",
                                                 node=last.address)[0]["shards"]}
            assert owners == {"n1", "n2 (gone)", "n3 (gone)"}
            quiet = time.monotonic_ns()
            pause(2)  # in which whoever still answers would be seen
            waiting = [one for one in asker.stop() if one.sent_ns > quiet]
        assert any(" strict.waits " in line and why in line for line in last.daemon.lines())
        assert waiting and {(one.error, one.may_have_happened) for one in waiting} == {
            ("Expired", False)}
        print(f"stopped: {len(waiting)} asks expired; evidence {(quiet - killed_ns) / 1e9:.1f} s "
              "after the kill")
        assert ctl_json("confirm", node=last.address) == {"confirmed": True}
        assert not ctl_json("status", node=last.address)["evidence"]
        begin = time.monotonic()
        every_counter_answers(cluster)
        print(f"every counter answered {time.monotonic() - begin:.1f} s after the confirmation")


def evidence_of(member):
    status = ctl_json("status", node=member.address)
    return status if status["evidence"] else None


def drain_and_refill(cluster, member):
    """Drains a node; then gives it some of the shards back, one by one."""
    other = cluster[member.number % 3 + 1]
    assert owned_by(cluster, {member.name}, other)
    drained = ctl("--timeout", "30s", "drain", member.name, node=other.address)
    assert drained.returncode == 0, drained.stderr
    assert not owned_by(cluster, {member.name}, other)
    assert ctl("uncordon", member.name, node=other.address).returncode == 0
    for entity in COUNTERS[:10]:
        shard = f"counter:{shard_of(entity.encode(), SHARDS)}"
        moved = ctl("--timeout", "30s", "move", shard, member.name, node=other.address)
        assert moved.returncode == 0, moved.stderr


def test_drains_and_moves_of_strict_shards_lose_nothing(tmp_path):
    with strict_cluster(3, tmp_path) as cluster, contextlib.ExitStack() as stack:
        begin_counters(cluster[1].address, COUNTERS)
        askers = [stack.enter_context(Asker(member.name, member.address, COUNTERS))
                  for member in cluster.members]
        begin = time.monotonic()
        for member in cluster.members:
            drain_and_refill(cluster, member)
        took = time.monotonic() - begin
        answers = [one for asker in askers for one in asker.stop()]
        print(f"{len(answers)} asks in {took:.1f} s of moves")
        assert not [one for one in answers if one.error]
        for entity, some in by_entity(answers).items():
            wanted = [BASE + number for number in range(1, len(some) + 1)]
            assert sorted(one.total for one in some) == wanted, entity
