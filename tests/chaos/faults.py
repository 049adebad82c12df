"""Faults drawn from a seed, and how each is done to a cluster and undone."""

import signal
import time
from typing import NamedTuple

from cluster import FAILURE_TIMEOUT, pause
from history import Fault
from network import both_ways, one_way

# Which kinds there are, what each does, and whether it needs namespaces.
KINDS = {
    "kill": ("SIGKILL of a node, or of a node and its worker; started again on its address", False),
    "worker": ("SIGKILL of a worker; started again", False),
    "stop": ("SIGSTOP of a node and its worker, or of the node alone; below and beyond the "
             "failure timeout", False),
    "client": ("SIGSTOP of a process of senders", False),
    "drop": ("a node, or two, cut off from the others in both directions", True),
    "one-way": ("a node that is not heard, or does not hear, or one link that loses one direction",
                True),
    "outage": ("SIGKILL of all nodes but one, or of all; SIGSTOP of all", False),
    "crash-cut": ("a node cut off, and another one killed meanwhile", True),
    "leave": ("SIGTERM of a node while another one is killed, frozen, or stopped in order", False),
    "rolling": ("SIGTERM and a new start of every node in turn: planned, in rounds of their own",
                False),
}
CLIENTS = 3  # processes of senders
LENGTHS = {  # in failure timeouts
    "kill": (0, 0.5, 1, 2), "stop": (0.2, 0.6, 1, 2, 3), "client": (0.5, 2),
    "drop": (0.3, 0.8, 1.5, 3), "one-way": (0.3, 0.8, 1.5, 3), "crash-cut": (1, 3),
    "worker": (0, 1), "outage": (0, 1, 3), "leave": (0, 0.5, 2),
}


class Step(NamedTuple):
    """One fault of a round: who, how, for how many seconds, and the pause before it."""

    kind: str
    nodes: tuple
    how: str
    seconds: float
    before: float

    def __str__(self):
        who = "+".join(f"{'s' if self.kind == 'client' else 'n'}{one}" for one in self.nodes)
        how = f" {self.how}" if self.how else ""
        return f"{self.kind}{how} {who} for {self.seconds:.2f} s"


def plan(random, kinds, size, seconds):
    """Gives the steps of a round that is to last about so long."""
    steps, left = [], seconds
    while left > 0:
        kind = random.choice(kinds)
        minority = (size - 1) // 2
        how, count = _way(random, kind, size, minority)
        among = CLIENTS if kind == "client" else size
        nodes = tuple(random.sample(range(1, among + 1), count))
        length = random.choice(LENGTHS[kind]) * FAILURE_TIMEOUT
        step = Step(kind, nodes, how, round(length, 2), round(random.uniform(0.2, 1.5), 2))
        steps.append(step)
        left -= step.before + step.seconds + 1.5  # about what it takes until all is whole again
    return steps


def _way(random, kind, size, minority):
    if kind == "kill":
        return random.choice((("node", 1), ("machine", 1), ("machine", min(2, minority))))
    if kind == "stop":
        return random.choice((("node", 1), ("machine", 1), ("machine", min(2, minority))))
    if kind == "drop":
        return random.choice((("from all", 1), ("from all", min(2, minority)), ("one link", 2)))
    if kind == "one-way":
        return random.choice((("unheard", 1), ("deaf", 1), ("one link", 2)))
    if kind == "outage":
        return random.choice((("killed", size - 1), ("killed", size), ("frozen", size)))
    if kind == "leave":
        return random.choice(("while killed", "while frozen", "twice")), 2
    if kind == "crash-cut":
        return "then killed", 2
    return "", 1


class Injector:
    """Does the steps; keeps what was done and when, for the checker."""

    def __init__(self, cluster, clients, say):
        self._cluster = cluster
        self._clients = clients
        self._say = say
        self.done = []
        self.frozen = set()  # client processes that stood still

    def run(self, step):
        pause(step.before)
        self._say(str(step))
        begin = time.monotonic_ns()
        getattr(self, "_" + step.kind.replace("-", "_"))(step)
        self.done.append(Fault(str(step), begin, time.monotonic_ns(),
                               cut=step.kind in ("drop", "one-way", "crash-cut"),
                               end=(step.kind in ("kill", "worker", "crash-cut", "leave")
                                    or step.how == "killed"),
                               pause=step.kind == "stop" or "frozen" in step.how))

    def _members(self, step):
        return [self._cluster[number] for number in step.nodes]

    def _kill(self, step):
        for member in self._members(step):
            member.kill(worker=step.how != "node")
        pause(step.seconds)
        self._revive(self._members(step))

    def _revive(self, members):
        for member in members:
            member.start(wait=False)
        for member in members:
            member.start()

    def _worker(self, step):
        for member in self._members(step):
            member.kill(daemon=False)
        pause(step.seconds)
        self._revive(self._members(step))

    def _stop(self, step):
        worker = step.how != "node"
        for member in self._members(step):
            member.send(signal.SIGSTOP, worker=worker)
        pause(step.seconds)
        for member in self._members(step):
            member.send(signal.SIGCONT, worker=worker)

    def _outage(self, step):
        if step.how == "frozen":
            return self._stop(step)
        return self._kill(step)

    def _leave(self, step):
        leaving, other = self._members(step)
        numbers = {"while killed": signal.SIGKILL, "while frozen": signal.SIGSTOP,
                   "twice": signal.SIGTERM}
        leaving.daemon.send(signal.SIGTERM)
        other.send(numbers[step.how])
        pause(step.seconds)
        other.send(signal.SIGCONT)
        codes = [leaving.left()]
        if step.how == "while killed":
            other.kill()
        elif step.how == "twice":
            codes.append(other.left())
        # 6: the other one did not take the shards in time, which is no fault of whoever leaves.
        assert set(codes) <= {0, 6}, f"left with {codes}"
        self._revive([leaving, other])

    def _client(self, step):
        client = self._clients[step.nodes[0] - 1]
        self.frozen.add(client.name)
        client.process.send_signal(signal.SIGSTOP)
        pause(step.seconds)
        client.process.send_signal(signal.SIGCONT)

    def _ways(self, step):
        others = [member.number for member in self._cluster.members
                  if member.number not in step.nodes]
        if step.how == "one link":
            link = both_ways if step.kind == "drop" else one_way
            return link(step.nodes[:1], step.nodes[1:])
        if step.kind == "drop":
            return both_ways(step.nodes, others)
        if step.how == "unheard":
            return one_way(step.nodes, others)
        if step.how == "deaf":
            return one_way(others, step.nodes)
        return both_ways(step.nodes[:1], [*others, step.nodes[1]])

    def _drop(self, step):
        ways = self._ways(step)
        self._cluster.network.drop(*ways)
        pause(step.seconds)
        self._cluster.network.heal(*ways)

    _one_way = _drop

    def _crash_cut(self, step):
        ways = self._ways(step)
        self._cluster.network.drop(*ways)
        victim = self._cluster[step.nodes[1]]
        pause(step.seconds / 3)
        victim.kill()
        pause(step.seconds * 2 / 3)
        self._cluster.network.heal(*ways)
        self._revive([victim])
