"""Runs rounds of faults against a cluster under load, and judges each round; see `run --help`."""

import contextlib
import itertools
import random
import signal
import subprocess
import sys
import threading
import time

import shardbus

import history
import witness
from cluster import HERE, Cluster, downing_flags, pause
from daemons import environment, read_line
from faults import KINDS, Injector, plan
from history import Fault, Round
from ledger_worker import SHARDS, TYPE
from network import die_with_parent, open_network
from raw_peer import resident
from shardbus import shard_of

ROUND_SECONDS = 12  # of faults; with what comes before and after it is about 20
WHOLE = 20  # seconds after the last fault in which all nodes agree again
ANSWERED = 10  # seconds after that in which one entity of each shard answers through each node
MEMORY = 200 << 20  # bytes that a node may grow by
RATE = 60  # messages a second of each of the six senders
EXIT_HELD, EXIT_BROKE, EXIT_CANNOT = 0, 1, 77


class CannotRun(Exception):
    """Nothing of what was asked for can be done on this machine."""


class Broke(Exception):
    """Something that ends a round early: no use to go on."""


class Client:
    """A process of senders."""

    def __init__(self, name, addresses, folder, route="any", seed="1", rate=RATE):
        self.name = name
        self.route = route
        self.via = addresses
        self.log = folder / f"{name}.jsonl"
        self.stat = (0, 0, 0)
        self._words = []
        self._changed = threading.Condition()
        command = [sys.executable, HERE / "sender.py", "--name", name, "--route", route, "--rate",
                   str(rate), "--seed", seed, "--log", self.log, "--nodes", *addresses]
        with open(folder / f"{name}.err", "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors,
                                            env=environment(), preexec_fn=die_with_parent)
        assert read_line(self.process.stdout, name) == "ready"
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            word, *rest = line.split()
            with self._changed:
                if word == "stat":
                    self.stat = tuple(map(int, rest))
                else:
                    self._words.append(word)
                    self._changed.notify_all()

    def tell(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def wait(self, word, patience):
        with self._changed:
            if not self._changed.wait_for(lambda: self._words, patience):
                raise Broke(f"the senders of {self.name} did not end `{word}` in {patience} s: an "
                            "ask hangs")
            assert self._words.pop(0) == word

    def go_via(self, addresses):
        self.via = addresses
        self.tell("via", *addresses)
        self.wait("via", 30)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Run:
    """One run: a cluster, its clients, and rounds until the time is over or a promise broke."""

    def __init__(self, options, folder, stack):
        self.options = options
        self.folder = folder
        self._begin = time.monotonic()
        self.network, self.no_network = ((None, "--no-namespaces") if options.no_namespaces
                                         else open_network(stack))
        self.kinds = [kind for kind in options.faults if self.network or not KINDS[kind][1]]
        if not self.kinds:
            raise CannotRun(f"{', '.join(options.faults)}: needs namespaces: {self.no_network}")
        flags = downing_flags(options.downing, options.nodes)
        self.cluster = stack.enter_context(Cluster(options.nodes, folder, self.network, flags))
        self.clients = []
        stack.callback(lambda: [client.close() for client in self.clients])
        addresses = [member.address for member in self.cluster.members]
        for name, route, via in (("s1", "any", addresses[:1]), ("s2", "any", addresses[1:2]),
                                 ("s3", "owners", addresses)):
            self.clients.append(Client(name, via, folder, route, str(options.seed),
                                       options.rate))
        self.injector = Injector(self.cluster, self.clients, self.say)
        self.memory = {member.name: self._memory(member) for member in self.cluster.members}
        self._read_to = dict.fromkeys(["witness", *(client.name for client in self.clients)], 0)
        self._lives, self._seen = None, frozenset()
        self.rounds = []
        self.totals = history.Findings()

    # --- progress ---

    def say(self, text):
        print(f"{time.monotonic() - self._begin:7.1f} s  {text}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def ticking(self):
        """Prints what the senders do, so that a run that works is not taken for one that hangs."""
        over = threading.Event()
        ticker = threading.Thread(target=self._tick_until, args=(over,), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            over.set()
            ticker.join()

    def _tick_until(self, over):
        while not over.wait(3):
            sent, ended, errors = map(sum, zip(*(client.stat for client in self.clients)))
            self.say(f"  sent {sent}, ended {ended}, of these {errors} in an error")

    @staticmethod
    def _memory(member):
        return resident(member.daemon.process.pid)

    # --- a round ---

    def steps(self, number):
        """Gives the plan of a round; None for a planned one."""
        others = [kind for kind in self.kinds if kind != "rolling"]
        if "rolling" in self.kinds and (number % 3 == 1 or not others):
            return None
        seconds = self.options.round_seconds
        return plan(random.Random(f"{self.options.seed}/{number}"), others, self.options.nodes,
                    seconds)

    def round(self, number):
        begin = time.monotonic()
        steps = self.steps(number)
        self.say(f"round {number}: " + ("rolling restart" if steps is None
                                        else f"{len(steps)} faults"))
        self.injector.done, self.injector.frozen = [], set()
        early = None
        figures = {}
        try:
            self._choose_ways(steps is None)
            for client in self.clients:
                client.tell("go", str(number))
                client.wait("go", 30)
            if steps is None:
                self._roll()
            else:
                for step in steps:
                    self.injector.run(step)
                    self._check_processes()
            figures = self._recover()
            self._drain()
        except (Broke, AssertionError, TimeoutError) as problem:
            early = f"liveness: {problem}"
        found = self._judge(steps is None, early)
        result = {"round": number, "planned": steps is None,
                  "faults": [fault.what for fault in self.injector.done],
                  "seconds": round(time.monotonic() - begin, 1), **figures,
                  "broken": found.broken, "overlaps_ms": [o.ms for o in found.overlaps]}
        self.rounds.append(result)
        return not found.broken

    def _choose_ways(self, planned):
        """In a planned round a client knows one node, and changes before that one leaves."""
        addresses = [member.address for member in self.cluster.members]
        for index, client in enumerate(self.clients):
            if client.route == "any":
                turned = addresses[index:] + addresses[:index]
                client.go_via(turned[:1] if planned else turned)

    def _roll(self):
        """Restarts all nodes in order, one by one, then two at a time, and so on."""
        end = time.monotonic() + self.options.round_seconds
        for count in itertools.cycle((1, 2)):
            members = self.cluster.members
            for first in range(0, len(members), count):
                self._restart_in_order(members[first:first + count])
            if time.monotonic() > end:
                return

    def _restart_in_order(self, members):
        others = [one.address for one in self.cluster.members if one not in members]
        gone = {member.address for member in members}
        for index, client in enumerate(self.clients):
            if client.route == "any" and gone & set(client.via):
                client.go_via([others[index % len(others)]])
        begin = time.monotonic_ns()
        for member in members:
            member.daemon.send(signal.SIGTERM)
        codes = [member.left() for member in members]
        names = "+".join(member.name for member in members)
        self.injector.done.append(Fault(f"rolling {names}", begin, time.monotonic_ns(), end=True))
        self.say(f"{names} left with {codes} in {(time.monotonic_ns() - begin) / 1e9:.2f} s")
        if any(codes):
            raise Broke(f"{names} were to leave in order and ended with {codes}")
        for member in members:
            member.start(wait=False)
        for member in members:
            member.start()
        self.cluster.wait_whole(WHOLE)

    def _check_processes(self):
        for member in self.cluster.members:
            problem = member.unexpected_end()
            if problem:
                raise Broke(problem)

    def _recover(self):
        """The liveness phase: all nodes agree again, and every shard answers through each."""
        begin = time.monotonic()
        self.cluster.wait_whole(WHOLE)
        whole = time.monotonic() - begin
        for member in self.cluster.members:
            self._probe(member, begin + WHOLE + ANSWERED)
        answered = time.monotonic() - begin
        self.say(f"whole again after {whole:.1f} s, every shard answered after {answered:.1f} s")
        for member in self.cluster.members:
            grown = self._memory(member) - self.memory[member.name]
            if grown > MEMORY:
                raise Broke(f"{member.name} grew by {grown >> 20} MiB")
        return {"whole_s": round(whole, 2), "answered_s": round(answered, 2)}

    def _probe(self, member, deadline):
        left = [(TYPE, name, "peek") for name in probes(SHARDS)]
        left += [("counter", name, "get") for name in probes(256)]
        with shardbus.connect(member.address) as bus:
            while left:
                asks = [(what, bus.entity(*what[:2]).ask_future(what[2], timeout=5))
                        for what in left]
                errors = [(what, ask.exception()) for what, ask in asks]
                left = [what for what, error in errors if error]
                if left and time.monotonic() > deadline:
                    raise Broke(f"{len(left)} shards do not answer through {member.name}: "
                                f"{[error for _, error in errors if error][:3]!r}")
                if left:
                    pause(0.1)

    def _drain(self):
        for client in self.clients:
            client.tell("drain")
        for client in self.clients:
            client.wait("drain", 40)

    def _judge(self, planned, early):
        notes, self._read_to["witness"] = witness.read(self.cluster.witness,
                                                       self._read_to["witness"])
        sent = []
        for client in self.clients:
            some, self._read_to[client.name] = history.read_sent(client.log,
                                                                 self._read_to[client.name])
            sent += some
        protected = frozenset(client.name for client in self.clients if client.route == "any")
        found, self._lives, self._seen = history.judge(Round(
            notes, sent, self.injector.done, planned, protected, frozenset(self.injector.frozen),
            before=self._lives, seen=self._seen))
        if early:
            # Who did not finish has asks that have not ended yet, so that rule says nothing.
            found.broken = [one for one in found.broken if "never ended" not in one]
            found.broke("liveness", early)
        self.totals.broken += found.broken
        self.totals.overlaps += found.overlaps
        longest = max(self.totals.counts["longest_ask_ms"], found.counts.pop("longest_ask_ms", 0))
        self.totals.counts += found.counts
        self.totals.counts["longest_ask_ms"] = longest
        for text in found.broken:
            self.say(f"BROKEN {text}")
        return found


def probes(shards):
    """Gives ids, one for each shard."""
    found = {}
    for number in itertools.count():
        name = f"probe-{number}"
        found.setdefault(shard_of(name.encode(), shards), name)
        if len(found) == shards:
            return list(found.values())
