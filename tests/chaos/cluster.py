"""The nodes of a chaos run: each a shardbusd and a worker, which freeze and die together or not.

Start processes from the main thread: they end with the thread that started them.
"""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import threading

from daemons import BIN, Daemon, ctl, environment, free_port, read_line
from network import die_with_parent
from raw_peer import wait_until

HERE = pathlib.Path(__file__).parent
FAILURE_TIMEOUT = 1.5  # seconds; what nodes have by default


def pause(seconds):
    """Lets the time pass that a fault is to last: it is what is tested, not what is waited for."""
    threading.Event().wait(seconds)


class Member:
    """One place of the cluster: its address stays, its processes come and go."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.name = f"n{number}"
        network = cluster.network
        host = network.add(number) if network else "127.0.0.1"
        port = 7400 if network else free_port()
        self.address = f"tcp://{host}:{port}"
        self._enter = network.entering(number) if network else die_with_parent
        self.daemon = None
        self.worker = None
        self._lives = 0

    def start(self, wait=True, worker=True):
        """Starts what is not running; waits until it serves, unless told otherwise."""
        if self.daemon is None:
            self._lives += 1
            self.daemon = Daemon("--name", self.name, *self.cluster.flags_of(self),
                                 listen=self.address, preexec_fn=self._enter)
        if wait:
            if not self.daemon.fields:
                self.daemon.ready()
            if worker and self.cluster.workers:
                self.start_worker()
        return self

    def start_worker(self):
        if self.worker is None:
            log = open(self.cluster.folder / f"{self.name}.worker.log", "a", encoding="utf-8")
            with log:
                self.worker = subprocess.Popen(
                    [sys.executable, HERE / "ledger_worker.py", "--node", self.address,
                     "--witness", self.cluster.witness], text=True, stdout=subprocess.PIPE,
                    stderr=log, env=environment(), preexec_fn=self._enter)
            assert read_line(self.worker.stdout, f"the worker of {self.name}") == "ready"

    def send(self, number, daemon=True, worker=True):
        if daemon and self.daemon:
            self.daemon.send(number)
        if worker and self.worker:
            self.worker.send_signal(number)

    def freeze(self):
        """SIGSTOP to the node, and waits until every thread of it stands still."""
        self.daemon.send(signal.SIGSTOP)
        threads = pathlib.Path(f"/proc/{self.daemon.process.pid}/task")
        wait_until(lambda: all((one / "stat").read_text().rpartition(")")[2].split()[0] == "T"
                               for one in threads.iterdir()), f"{self.name} stands still")

    def kill(self, daemon=True, worker=True):
        """SIGKILL, to one or both, and waits for the end."""
        if daemon and self.daemon:
            self.daemon.send(signal.SIGKILL)
            self.daemon_ended()
        if worker and self.worker:
            self._end_worker(signal.SIGKILL)

    def leave(self, patience=60):
        """SIGTERM to the node, which has to leave in order; then to its worker. Gives the code."""
        self.daemon.send(signal.SIGTERM)
        return self.left(patience)

    def left(self, patience=60):
        """Waits for a node that has had its SIGTERM; ends its worker, too. Gives the code."""
        code = self.daemon.wait(patience)
        self.daemon_ended()
        if self.worker:
            self._end_worker(signal.SIGTERM)
        return code

    def daemon_ended(self):
        """Reaps the node, and writes its log beside the others."""
        daemon, self.daemon = self.daemon, None
        daemon.wait()
        with open(self.cluster.folder / f"{self.name}.{self._lives}.log", "w",
                  encoding="utf-8") as file:
            file.write(daemon.log() + f"\n--- ended with {daemon.process.returncode}\n")
        daemon.__exit__()

    def _end_worker(self, number):
        worker, self.worker = self.worker, None
        worker.send_signal(number)
        worker.wait(20)
        worker.stdout.close()

    def unexpected_end(self):
        """Tells what ended that nobody killed, or gives an empty text."""
        for what, process in (("shardbusd", self.daemon and self.daemon.process),
                              ("worker", self.worker)):
            if process and process.poll() is not None:
                return f"{what} of {self.name} ended by itself with {process.returncode}"
        return ""

    def close(self):
        self.send(signal.SIGCONT)
        self.kill()


class Cluster:
    """All members, their common folder, and questions to them; without workers if so told."""

    def __init__(self, size, folder, network=None, flags=(), start=True, workers=True):
        self.folder = pathlib.Path(folder)
        self.network = network
        self.flags = list(flags)
        self.workers = workers
        self.witness = self.folder / "witness.jsonl"
        self.witness.touch()
        self.members = [Member(self, number) for number in range(1, size + 1)]
        if start:
            with contextlib.ExitStack() as undo:
                undo.callback(self.close)
                self.start_all()
                undo.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for member in self.members:
            member.close()

    def __getitem__(self, number):
        """Members have the numbers from 1."""
        return self.members[number - 1]

    def flags_of(self, _member):
        return ["--seeds", ",".join(member.address for member in self.members), *self.flags]

    def start_all(self):
        for member in self.members:
            member.start(wait=False)
        for member in self.members:
            member.start()
        self.wait_whole()

    @property
    def alive(self):
        return [member for member in self.members if member.daemon]

    def view(self, member):
        """Gives what a node knows of the members: name -> (state, reachable, incarnation)."""
        done = ctl("--json", "--timeout", "2s", "members", node=member.address)
        if done.returncode != 0:
            return None
        return {row["name"]: (row["state"], row["reachable"], row["incarnation"])
                for row in json.loads(done.stdout)}

    def status(self, member):
        done = ctl("--json", "--timeout", "2s", "status", node=member.address)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def agree(self, members):
        """Whether these nodes see each other, only each other, all up and with one view."""
        wanted = {member.name for member in members}
        views = [self.view(member) for member in members]
        return all(view is not None and set(view) == wanted and view == views[0]
                   and all(state == "up" and reachable for state, reachable, _ in view.values())
                   for view in views)

    def settled(self, members):
        """Whether besides all shards are where they are to be."""
        if not self.agree(members):
            return False
        found = [self.status(member) for member in members]
        return all(one and one["ready"] and one["moves_open"] == 0 for one in found)

    def wait_whole(self, patience=30):
        wait_until(lambda: self.settled(self.alive), "all nodes agree and are ready", patience)

    def owners(self, type_name, member):
        """Gives shard -> name of its owner, as a node knows it."""
        done = ctl("--json", "shards", "--type", type_name, node=member.address)
        if done.returncode != 0:
            return {}
        return {row[0]: row[1] for row in json.loads(done.stdout)[0]["shards"]}


def stepped_down(member):
    """Whether a node has given up all it owned, in the life of its process."""
    return any(" downing.down_self " in line for line in member.daemon.lines())


def downing_flags(policy, size):
    """Gives the flags of a policy, for a cluster of that size."""
    quorum = ["--quorum-size", str(size // 2 + 1)] if policy == "static-quorum" else []
    return ["--downing", policy, *quorum] if policy else []


def refusal(flags):
    """Gives why shardbusd refuses to start with these flags, or an empty text."""
    done = subprocess.run([BIN / "shardbusd", "--check-config", *flags], capture_output=True,
                          text=True, check=False, env=environment())
    return done.stderr.strip() if done.returncode else ""
