"""Roles, proxies and settings that differ, on real brokers."""
import collections
import contextlib

from daemons import Daemon, ctl, ctl_json


def owned(node, name="counter"):
    (found,) = [one for one in ctl_json("shards", node=node) if one["type"] == name]
    return collections.Counter(owner for _, owner, *_ in found["shards"])


@contextlib.contextmanager
def cluster(*settings):
    """One broker per list of flags, named a, b, ...; the address of the first."""
    with contextlib.ExitStack() as stack:
        first = ""
        for name, flags in zip("abcdef", settings):
            seeds = ["--seeds", first] if first else []
            daemon = stack.enter_context(Daemon("--name", name, *seeds, *flags))
            first = first or daemon.ready().address
        done = ctl("wait", "--members", str(len(settings)), "--type", "counter", node=first)
        assert done.returncode == 0, done.stderr
        yield first, stack


def test_a_node_without_the_role_and_a_proxy_only_route():
    web = ["--builtin-role", "web"]
    with cluster(web, [*web, "--roles", "web,batch", "--zone", "north", "--capacity", "3"],
                 [*web, "--roles", "web", "--proxy", "on"]) as (node, _):
        assert owned(node) == {"b": 256}
        done = ctl("ask", "counter", "x", "add", '{"amount": 3}', node=node)
        assert done.returncode == 0 and done.stdout.strip() == "3", done.stderr
        members = {one["name"]: one for one in ctl_json("members", node=node)}
        assert members["b"]["roles"] == ["batch", "web"] and members["b"]["zone"] == "north"
        assert members["b"]["capacity"] == 3 and members["a"]["capacity"] == 1
        assert len({one["version"] for one in members.values()}) == 1 and members["a"]["version"]


def test_a_broker_without_types_is_a_proxy():
    with cluster([], ["--builtin-types", "off"]) as (node, _):
        assert owned(node) == {"a": 256}
        members = {one["name"]: one for one in ctl_json("members", node=node)}
        other = members["b"]["front"]
        done = ctl("ask", "counter", "x", "add", '{"amount": 2}', node=other)
        assert done.returncode == 0 and done.stdout.strip() == "2", done.stderr


def test_capacity_shares_the_shards():
    weighted = ["--builtin-placement", "weighted"]
    with cluster(weighted, [*weighted, "--capacity", "3"]) as (node, _):
        assert owned(node) == {"a": 64, "b": 192}


def test_other_settings_are_refused_with_both_values():
    with cluster([]) as (node, stack):
        other = stack.enter_context(
            Daemon("--name", "b", "--seeds", node, "--builtin-placement", "ring"))
        other.wait_for_log("placement of type 'counter': the cluster has least-shards, node 'b' "
                           "has ring; set TypeOptions::placement (of the built-in types: "
                           "builtin_placement)")

