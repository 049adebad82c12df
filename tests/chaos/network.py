"""A network of our own: each node in a network namespace at one bridge, with drops per direction.

Nothing of it is seen outside or outlives this process: the namespaces have no names, and go with
the processes in them. What is dropped leaves for a link-layer address that nobody has, so neither
side hears of it, as with a broken switch; the kernel needs no filter for that.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
SET_DEATH_SIGNAL = 1
NOBODY = "02:00:00:00:be:ef"
CLIENTS = 254  # last byte of the address of this process


class NotPermitted(Exception):
    """Namespaces cannot be had here; the text says why."""


def die_with_parent():
    """For preexec_fn: a driver that is killed leaves no process behind."""
    LIBC.prctl(SET_DEATH_SIGNAL, signal.SIGKILL)


def _call(function, *arguments):
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise NotPermitted(f"{function.__name__}: {os.strerror(number)}")


def _enter_namespace():
    """Gives this thread, and what it starts from now on, a network of its own."""
    for tool in ("ip", "nsenter", "unshare"):
        if not shutil.which(tool):
            raise NotPermitted(f"{tool} is not installed")
    try:
        _call(LIBC.unshare, NEW_NETWORK)
    except NotPermitted:
        user, group = os.getuid(), os.getgid()
        _call(LIBC.unshare, NEW_USER | NEW_NETWORK)
        process = pathlib.Path("/proc/self")
        (process / "setgroups").write_text("deny")
        (process / "uid_map").write_text(f"0 {user} 1")
        (process / "gid_map").write_text(f"0 {group} 1")


def ip(*commands, holder=None):
    """Runs commands of `ip`, in the namespace of a process if one is given."""
    enter = ["nsenter", f"--net=/proc/{holder}/ns/net"] if holder else []
    done = subprocess.run([*enter, "ip", "-batch", "-"], input="\n".join(commands) + "\n",
                          capture_output=True, text=True, check=False, timeout=20)
    if done.returncode != 0:
        raise NotPermitted(f"ip {'; '.join(commands)}: {done.stderr.strip()}")


class Network:
    """A bridge; the process that makes it is at it, too, with its clients.

    Make it in the main thread before other threads or sockets, as they keep the network they have.
    """

    def __init__(self):
        self._holders = {}
        self._dropped = set()
        _enter_namespace()
        ip("link set lo up", "link add hub type bridge", f"addr add 10.77.0.{CLIENTS}/24 dev hub",
           "link set hub up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for holder in self._holders.values():
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()

    def add(self, number):
        """Adds a host; gives its address."""
        # It ends when its stdin does, which is when this process does.
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._holders[number] = holder
        holder.stdout.readline()
        ip(f"link add v{number} type veth peer name eth0 netns {holder.pid}",
           f"link set v{number} master hub up")
        ip("link set lo up", f"addr add 10.77.0.{number}/24 dev eth0", "link set eth0 up",
           holder=holder.pid)
        return f"10.77.0.{number}"

    def entering(self, number):
        """Gives a preexec_fn: the process starts at that host."""
        path = f"/proc/{self._holders[number].pid}/ns/net"

        def enter():
            die_with_parent()
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            _call(LIBC.setns, descriptor, NEW_NETWORK)

        return enter

    def drop(self, *ways):
        """Loses from now on what goes each way (from, to); CLIENTS is this process."""
        self._change(ways, f"neigh replace 10.77.0.{{to}} lladdr {NOBODY} nud permanent dev {{at}}")
        self._dropped |= set(ways)

    def heal(self, *ways):
        """Ends the drops of these ways, or all."""
        ended = set(ways) & self._dropped if ways else set(self._dropped)
        self._change(ended, "neigh del 10.77.0.{to} dev {at}")
        self._dropped -= ended

    def _change(self, ways, command):
        for source in sorted({source for source, _ in ways}):
            at = "hub" if source == CLIENTS else "eth0"
            holder = None if source == CLIENTS else self._holders[source].pid
            ip(*(command.format(to=to, at=at) for start, to in sorted(ways) if start == source),
               holder=holder)


def both_ways(some, others):
    """Gives the ways between two groups of hosts, in both directions."""
    return [way for a in some for b in others for way in ((a, b), (b, a))]


def one_way(some, others):
    """Gives the ways from one group of hosts to another."""
    return [(a, b) for a in some for b in others]


def open_network(stack: contextlib.ExitStack):
    """Gives (network, None), or (None, why there can be none)."""
    try:
        return stack.enter_context(Network()), None
    except NotPermitted as why:
        return None, str(why)
