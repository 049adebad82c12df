"""Clusters whose built-in counters are asked all the time, and who may have answered."""

from answers import by_entity, overlaps, repeated, reported_overlaps
from cluster import Cluster
from shardbus import connect, shard_of

COUNTERS = [f"c{number}" for number in range(60)]
SHARDS = 256
REHOMED = 10  # seconds in which what an owner had answers again through those that go on


def strict_cluster(size, folder, network=None, consistency="strict"):
    return Cluster(size, folder, network, ["--builtin-consistency", consistency], workers=False)


def owned_by(cluster, names, witness):
    """Gives the counters that these members own, as another one knows it."""
    owners = cluster.owners("counter", witness)
    return {one for one in COUNTERS if owners[shard_of(one.encode(), SHARDS)] in names}


def every_counter_answers(cluster):
    for member in cluster.alive:
        with connect(member.address) as bus:
            asks = {one: bus.entity("counter", one).ask_future("get", timeout=5)
                    for one in COUNTERS}
            failed = {one: ask.exception() for one, ask in asks.items() if ask.exception()}
            assert not failed, f"through {member.name}: {failed}"


def all_taken_over(asker, counters):
    """Whether each of these counters answered through this node from its second life."""
    return counters <= {one.entity for one in asker.so_far() if one.new}


def check_owners(consistency, answers, owners_of, logs, since=0):
    """No overlap where types are strict, else each is told by the node that had the old owner."""
    assert not repeated(answers), repeated(answers)[:5]
    found = overlaps(answers, since)
    told = {name: reported_overlaps(lines) for name, lines in logs.items()}
    print(f"{len(found)} overlaps, longest {max(found.values(), default=0):.1f} ms; told: {told}")
    if consistency == "strict":
        assert not found, found
    for entity, took in found.items():
        assert any(took <= at_most for _, at_most in told[owners_of[entity]]), (entity, took, told)


def gaps(answers, counters):
    """Gives the least and most ms between the last old and the first new answer of a counter."""
    found = []
    for entity, some in by_entity(answers).items():
        if entity in counters:
            found.append((min(one.ended_ns for one in some if one.new)
                          - max(one.ended_ns for one in some if one.old)) / 1e6)
    return f"{min(found):.0f} to {max(found):.0f} ms"
