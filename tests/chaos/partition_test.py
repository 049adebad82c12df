"""Partitions of a cluster of five, each node in a network namespace, under load."""

import contextlib
import subprocess
import sys
import time

import pytest

import history
import witness
from cluster import Cluster, downing_flags, pause, stepped_down
from daemons import SLOWER, read_line
from driver import Client
from history import Fault, Round
from network import both_ways
from raw_peer import wait_until

# Policy -> which of the two sides survives: "majority", "oldest", or none.
POLICIES = {"keep-majority": "majority", "static-quorum": "majority", "keep-oldest": "oldest",
            "down-all": None}
HEALED = 5 * SLOWER  # seconds from healing until all views are equal


HEARER = """
import socket, sys
hears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
hears.bind((sys.argv[1], 9))
print("ready", flush=True)
while True:
    text, (host, _) = hears.recvfrom(100)
    print(host.rsplit(".")[-1], text.decode(), flush=True)
"""
TELLER = """
import socket, sys
for host in sys.argv[2:]:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), (host, 9))
"""


def test_what_is_dropped_goes_missing_one_way_only(network):
    hosts = [network.add(number) for number in (1, 2, 3)]
    with contextlib.ExitStack() as stack:
        hearers = []
        for number, host in enumerate(hosts, 1):
            hearers.append(stack.enter_context(subprocess.Popen(
                [sys.executable, "-c", HEARER, host], stdout=subprocess.PIPE, text=True,
                preexec_fn=network.entering(number))))
            stack.callback(hearers[-1].kill)
            assert read_line(hearers[-1].stdout, "hearer") == "ready"

        def tell(source, text, *to):
            subprocess.run([sys.executable, "-c", TELLER, text, *(hosts[one - 1] for one in to)],
                           check=True, preexec_fn=network.entering(source))

        def hears(number):
            return read_line(hearers[number - 1].stdout, "hearer")

        tell(1, "before", 2)
        assert hears(2) == "1 before"
        network.drop((1, 2))
        tell(1, "dropped", 2, 3)
        assert hears(3) == "1 dropped"
        tell(2, "other way", 1)
        assert hears(1) == "2 other way"
        network.heal()
        tell(1, "after", 2)
        assert hears(2) == "1 after"


def read_all(cluster, clients):
    """Gives the round of all that was sent and handled so far."""
    for client in clients:
        client.tell("drain")
    for client in clients:
        client.wait("drain", 40)
    sent = [message for client in clients for message in history.read_sent(client.log)[0]]
    return witness.read(cluster.witness)[0], sent


def clients_at(stack, folder, *members):
    """Starts a process of senders at each of these nodes."""
    clients = []
    for number, member in enumerate(members, 1):
        clients.append(Client(f"s{number}", [member.address], folder))
        stack.callback(clients[-1].close)
    for client in clients:
        client.tell("go", "1")
        client.wait("go", 10)
    return clients


@pytest.mark.parametrize("minority", [(4, 5), (1, 2)], ids=["youngest", "oldest"])
@pytest.mark.parametrize("policy", POLICIES)
def test_three_of_five_go_on_and_all_agree_soon_after_healing(network, tmp_path, policy, minority):
    flags = downing_flags(policy, 5)
    with Cluster(5, tmp_path, network, flags) as cluster, contextlib.ExitStack() as stack:
        few = [cluster[number] for number in minority]
        many = [member for member in cluster.members if member not in few]
        stays, goes = (few, many) if POLICIES[policy] == "oldest" and 1 in minority else (many, few)
        clients = clients_at(stack, tmp_path, many[0], few[0])
        begin = time.monotonic()
        cut_ns = time.monotonic_ns()
        network.drop(*both_ways(minority, [member.number for member in many]))
        if POLICIES[policy]:
            wait_until(lambda: cluster.agree(stays), "the side that survives agrees", 15)
        decided = time.monotonic() - begin
        wait_until(lambda: all(stepped_down(member) for member in goes),
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


@pytest.mark.parametrize("cut, killed", [(1, 2), (5, 1)], ids=["oldest cut", "oldest killed"])
def test_a_crash_within_a_partition_leaves_one_owner_within_two_seconds(network, tmp_path, cut,
                                                                       killed):
    with Cluster(5, tmp_path, network) as cluster, contextlib.ExitStack() as stack:
        alone, victim = cluster[cut], cluster[killed]
        rest = [member for member in cluster.members if member not in (alone, victim)]
        clients = clients_at(stack, tmp_path, rest[0], alone)
        begin = time.monotonic_ns()
        network.drop(*both_ways([cut], [member.number for member in (*rest, victim)]))
        victim.kill()
        wait_until(lambda: cluster.agree(rest), "the three others agree", 15)
        wait_until(lambda: stepped_down(alone), "the one alone steps down", 15)
        network.heal()
        victim.start()
        wait_until(lambda: cluster.agree(cluster.members), "all five agree", 30)
        end = time.monotonic_ns()
        cluster.wait_whole()
        found, _, _ = history.judge(Round(*read_all(cluster, clients), [
            Fault("cut", begin, end, cut=True), Fault("kill", begin, end, end=True)]))
        overlaps = sorted(round(one.ms, 1) for one in found.overlaps)
        print("overlaps in ms:", overlaps, dict(found.counts))
        assert not found.broken, "\n".join(found.broken)
        assert not overlaps or overlaps[-1] < 2000
