"""Partitions of a cluster of five, each node in a network namespace, under load."""

import contextlib
import pathlib
import time

import pytest

import history
import witness
from cluster import Cluster, knows_flag, pause
from driver import Client
from history import Fault, Round
from network import both_ways, open_network
from raw_peer import wait_until

# Policy -> which of the two sides survives: "majority", "oldest", or none.
POLICIES = {None: "majority", "keep-majority": "majority", "keep-oldest": "oldest",
            "down-all": None}
HEALED = 5  # seconds from healing until all views are equal


@pytest.fixture(name="network")
def fixture_network():
    with contextlib.ExitStack() as stack:
        network, why = open_network(stack)
        if network is None:
            pytest.skip(f"no network namespaces here: {why}")
        yield network


def flags_of(policy):
    if policy is None:
        return []
    if not knows_flag("--downing"):
        pytest.skip("this shardbusd has no --downing")
    return ["--downing", policy]


def steps_down(cluster, member):
    """Whether a node serves nothing as an owner: it is in no cluster, or not ready."""
    status = cluster.status(member)
    return status is not None and (not status["ready"] or status["state"] != "up")


def read_all(cluster, clients):
    """Gives the round of all that was sent and handled so far."""
    for client in clients:
        client.tell("drain")
    for client in clients:
        client.wait("drain", 40)
    sent = [message for client in clients for message in history.read_sent(client.log)[0]]
    return witness.read(cluster.witness)[0], sent


@pytest.mark.parametrize("minority", [(4, 5), (1, 2)], ids=["youngest", "oldest"])
@pytest.mark.parametrize("policy", POLICIES)
def test_three_of_five_go_on_and_all_agree_soon_after_healing(network, tmp_path, policy, minority):
    flags = flags_of(policy)
    with Cluster(5, tmp_path, network, flags) as cluster, contextlib.ExitStack() as stack:
        few = [cluster[number] for number in minority]
        many = [member for member in cluster.members if member not in few]
        stays, goes = (few, many) if POLICIES[policy] == "oldest" and 1 in minority else (many, few)
        clients = []
        for name, member in (("s1", many[0]), ("s2", few[0])):
            clients.append(Client(name, [member.address], pathlib.Path(tmp_path), "any", "1"))
            stack.callback(clients[-1].close)
        for client in clients:
            client.tell("go", "1")
            client.wait("go", 10)
        begin = time.monotonic()
        cut_ns = time.monotonic_ns()
        network.drop(*both_ways(minority, [member.number for member in many]))
        if POLICIES[policy]:
            wait_until(lambda: cluster.agree(stays), "the side that survives agrees", 15)
        decided = time.monotonic() - begin
        wait_until(lambda: all(steps_down(cluster, member) for member in goes),
                   "the other side steps down", 15)
        down = time.monotonic() - begin
        pause(1)  # the load goes on, on both sides
        network.heal()
        begin = time.monotonic()
        wait_until(lambda: cluster.agree(cluster.members), "all five agree", 30)
        healed = time.monotonic() - begin
        cluster.wait_whole()
        fault = Fault("cut", cut_ns, time.monotonic_ns(), cut=True)
        found, _, _ = history.judge(Round(*read_all(cluster, clients), [fault]))
        overlaps = [round(one.ms, 1) for one in found.overlaps]
        print(f"decided after {decided:.1f} s, other side down after {down:.1f} s, one view "
              f"{healed:.1f} s after healing, overlaps {overlaps} ms", dict(found.counts))
        assert healed < HEALED
        assert not found.broken, "\n".join(found.broken)
