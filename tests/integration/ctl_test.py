"""shardbusctl against a cluster of two real nodes."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading

import pytest

from daemons import BIN, SOURCE, Daemon, ctl, ctl_json, environment, free_port
from raw_peer import wait_until


@pytest.fixture(name="cluster", scope="module")
def fixture_cluster():
    with Daemon("--name", "a", "--cluster", "ctl") as first:
        first.ready()
        with Daemon("--name", "b", "--cluster", "ctl", "--seeds", first.address) as second:
            second.ready()
            done = ctl("wait", "--members", "2", "--type", "counter", node=first.address)
            assert done.returncode == 0, done.stderr
            yield first, second


@pytest.fixture(name="node")
def fixture_node(cluster):
    return cluster[0].address


def fnv1a64(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


# --- looking -----------------------------------------------------------------------------------

def test_status_of_the_node_contacted_and_of_another(node):
    status = ctl_json("status", node=node)
    assert status["node"] == "a" and status["cluster"] == "ctl"
    assert status["ready"] is True and status["members"] == 2 and status["up"] == 2
    assert ctl_json("status", "b", node=node)["node"] == "b"
    assert "coordinator" in ctl("status", node=node).stdout


def test_the_operators_guide_explains_every_counter_of_status(node):
    guide = (SOURCE / "bin/README.md").read_text()
    for name in ctl_json("status", node=node)["counters"]:
        assert f"`{name.removesuffix('_limit')}`" in guide, name


def test_members(node):
    members = {one["name"]: one for one in ctl_json("members", node=node)}
    assert set(members) == {"a", "b"}
    assert members["a"]["self"] and members["a"]["oldest"] and members["a"]["front"] == node
    assert all(one["state"] == "up" and one["reachable"] for one in members.values())
    text = ctl("members", node=node).stdout
    assert text.splitlines()[0].split()[:3] == ["NAME", "STATE", "REACHABLE"]


def test_shards_are_shared_evenly(node):
    types = {one["type"]: one for one in ctl_json("shards", node=node)}
    assert {"echo", "counter", "kv"} <= set(types)
    for one in types.values():
        owners = [shard[1] for shard in one["shards"]]
        assert len(owners) == one["shard_count"]
        assert abs(owners.count("a") - owners.count("b")) <= 1
    rows = ctl("shards", "--type", "kv", node=node).stdout.splitlines()
    assert len(rows) == 1 + types["kv"]["shard_count"]
    assert [one["type"] for one in ctl_json("shards", "--type", "kv", node=node)] == ["kv"]
    none = ctl("shards", "--type", "nope", node=node)
    assert none.returncode == 1 and "no_such_type: nope" in none.stderr, none.stderr


def test_where_explains_the_owner(node):
    where = ctl_json("where", "counter", "cart-42", node=node)
    assert where["hash"] == f"{fnv1a64(b'cart-42'):016x}"
    assert where["shard"] == fnv1a64(b"cart-42") % where["shard_count"]
    assert where["owner"] in ("a", "b") and where["why"]
    # The other node says the same.
    assert ctl_json("where", "counter", "cart-42", node=node)["owner"] == where["owner"]
    assert ctl_json("where", "counter", "{u7}/x", node=node)["tag"] == "u7"
    none = ctl("where", "nope", "x", node=node)
    assert none.returncode == 1 and "no_such_type: nope" in none.stderr, none.stderr


# --- calling -----------------------------------------------------------------------------------

def test_tell_and_ask(cluster):
    first, second = cluster
    assert ctl("tell", "counter", "t1", "add", '{"amount": 3}', node=first.address).stdout == ""
    done = ctl("ask", "counter", "t1", "get", node=first.address)
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert ctl_json("ask", "counter", "t1", "add", '{"amount": 4}', node=second.address) == {
        "reply": 7}
    ctl("ask", "counter", "t1", "reset", node=first.address)
    assert ctl_json("ask", "counter", "t1", "get", node=first.address) == {"reply": 0}


def test_kv_keeps_any_value(node):
    assert ctl_json("ask", "kv", "k", "get", node=node) == {"reply": None}
    for value in (5, "text", [1, {"a": None}], {"$bin": "00ff"}, 2**64 - 1, 1.0, False, None):
        assert ctl("ask", "kv", "k", "set", json.dumps(value), node=node).returncode == 0
        assert ctl_json("ask", "kv", "k", "get", node=node) == {"reply": value}
    assert ctl_json("ask", "kv", "k", "delete", node=node) == {"reply": True}
    assert ctl_json("ask", "kv", "k", "delete", node=node) == {"reply": False}


def test_echo_answers_every_method_and_stdin_is_a_payload(node):
    payload = '{"big": 18446744073709551615, "small": -9223372036854775808}'
    done = ctl("ask", "echo", "x", "whatever", "-", node=node, input=payload)
    assert json.loads(done.stdout) == json.loads(payload)


# --- errors ------------------------------------------------------------------------------------

def test_no_such_method(node):
    done = ctl("ask", "counter", "x", "explode", node=node)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("shardbusctl: error: no_such_method: explode")


@pytest.mark.parametrize("payload, parts", [
    ('{"amont": 3}', ['the key "amount" is missing', "add takes"]),
    ('{"amount": "3"}', ['"amount" is a string', "integer"]),
    ('{"amount": 1.5}', ['"amount" is a float']), ('{"amount": -1}', ['"amount" is negative']),
    ("[3]", ["the payload is an array"])])
def test_a_payload_that_does_not_fit_names_the_key_and_the_type(payload, parts, node):
    done = ctl("ask", "counter", "misfit", "add", payload, node=node)
    assert done.returncode == 1 and "decode_failed" in done.stderr and done.stdout == ""
    assert "it had no effect" in done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert ctl_json("ask", "counter", "misfit", "get", node=node) == {"reply": 0}


def test_no_such_node_names_it(node):
    done = ctl("status", "zzz", node=node)
    assert done.returncode == 1 and "zzz" in done.stderr and "$node" not in done.stderr


def test_a_type_that_nobody_hosts_is_named_before_a_short_deadline(node):
    done = ctl("--timeout", "1s", "ask", "nosuch", "x", "get", node=node)
    assert done.returncode == 1 and "no_such_type" in done.stderr, done.stderr


def test_a_word_that_is_no_command_is_named(node):
    done = ctl("frobnicate", node=node)
    assert done.returncode == 2 and "'frobnicate' is none" in done.stderr, done.stderr


@pytest.mark.parametrize("arguments, near", [
    (["ak", "counter", "x", "get"], "ask"), (["--tiemout", "1s", "status"], "--timeout"),
    (["--timeout", "1s", "statsu"], "status"), (["ask", "counter", "x", "get", "--jsn"], "--json"),
    (["bench", "throughptu"], "throughput"), (["wait", "--member", "2"], "--members"),
    (["--jsno", "ask"], "--json")])
def test_what_is_mistyped_gets_a_suggestion(arguments, near, node):
    done = ctl(*arguments, node=node)
    assert done.returncode == 2 and f"did you mean {near}?" in done.stderr, done.stderr


def test_an_unknown_flag_is_named_and_not_what_else_is_missing(node):
    done = ctl("--frob", "ask", node=node)
    assert done.returncode == 2 and "--frob" in done.stderr, done.stderr
    assert "TYPE" not in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:7400", "tcp://127.0.0.1", "http://a:1"])
def test_what_is_no_address_is_wrong_usage(address):
    done = ctl("status", node=address)
    assert done.returncode == 2 and "write tcp://HOST:PORT" in done.stderr


def test_no_such_type_names_the_way_out(node):
    done = ctl("ask", "nothing", "x", "get", node=node)
    assert done.returncode == 1
    assert "no_such_type" in done.stderr and "shardbusctl shards" in done.stderr


def test_errors_are_json_if_asked_for(node):
    done = ctl("--json", "ask", "counter", "x", "explode", node=node)
    error = json.loads(done.stderr)["error"]
    assert error["name"] == "no_such_method" and error["may_have_happened"] is False
    assert error["exit_code"] == done.returncode == 1


def test_a_node_that_is_not_there_is_code_3_and_names_the_address():
    done = ctl("--timeout", "500ms", "status", node="tcp://127.0.0.1:1")
    assert done.returncode == 3
    assert "unreachable" in done.stderr and "tcp://127.0.0.1:1" in done.stderr


def test_a_host_that_has_no_address_is_named():
    done = ctl("--timeout", "300ms", "members", node="tcp://no-such-host.invalid:7400")
    assert done.returncode == 3, done.stderr
    assert "the name no-such-host.invalid cannot be resolved" in done.stderr, done.stderr


def test_down_of_a_name_that_nobody_has(node):
    done = ctl("down", "nobody", node=node)
    assert done.returncode == 1 and "no member is called 'nobody'" in done.stderr


def test_a_node_in_no_cluster_says_so_and_whom_it_waits_for():
    listen, seed = (f"tcp://127.0.0.1:{free_port()}" for _ in "ab")
    with Daemon("--name", "alone", "--seeds", seed, listen=listen) as daemon:
        daemon.wait_for_log("join.waiting")
        status = ctl_json("status", node=listen)
        assert not status["ready"] and seed in status["why"], status["why"]
        for words in (("down", "zed"), ("cordon", "zed"), ("ask", "echo", "x", "y")):
            done = ctl("--timeout", "300ms", *words, node=listen)
            assert done.returncode == 1 and "this node is in no cluster" in done.stderr, done.stderr


def test_what_is_too_long_is_shown_in_part(node):
    done = ctl("ask", "counter", "i" * 300, "get", node=node)
    assert done.returncode == 2 and f'"{"i" * 40}"... (300 bytes)' in done.stderr, done.stderr


def test_questions_about_nodes_are_no_replies(node):
    before = ctl_json("status", node=node)["counters"]["replies"]
    for _ in range(5):
        ctl_json("members", node=node)
    assert ctl_json("status", node=node)["counters"]["replies"] == before


@pytest.mark.parametrize("arguments", [
    ["ask", "counter", "x", "add", "{broken"], ["ask", "counter", "x", "add", "1e999"],
    ["ask", "counter"], ["explode"], [], ["status", "--bogus"], ["--timeout", "5", "status"],
    ["ask", "echo", "x", "y", "99999999999999999999"]])
def test_wrong_usage_is_code_2_and_one_line(arguments, node):
    done = ctl(*arguments, node=node)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("shardbusctl: error: ")


def test_wait_says_what_it_waited_for(node):
    assert ctl("wait", "--members", "2", node=node).stdout == "ready members=2\n"
    assert ctl_json("wait", node=node) == {"ready": True, "members": 2}


def test_wait_runs_out_of_time_with_code_5(node):
    done = ctl("--timeout", "300ms", "wait", "--members", "3", node=node)
    assert done.returncode == 5 and "2 of 3 members are up" in done.stderr


@pytest.mark.parametrize("members", ["-3", "0", "x"])
def test_wait_wants_a_number_of_members(members, node):
    done = ctl("wait", "--members", members, node=node)
    assert done.returncode == 2 and "--members" in done.stderr


def test_a_type_that_lost_its_last_host_holds_up_nobody():
    with Daemon("--name", "alone", "--cluster", "lonely") as alone:
        address = alone.ready().address
        code = ("import shardbus\n"
                "@shardbus.host('cart', shards=8)\n"
                "class Cart: pass\n"
                f"worker = shardbus.Worker({address!r}, [Cart], cluster='lonely').start()\n"
                "input()\n"
                "worker.stop()\n")
        env = environment() | {"PYTHONPATH": str(SOURCE / "bindings/python")}
        worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=env)
        done = ctl("--timeout", "20s", "wait", "--type", "cart", node=address)
        assert done.returncode == 0, done.stderr
        worker.communicate(b"\n", timeout=20)
        wait_until(lambda: all(shard[1] is None for one in ctl_json("shards", node=address)
                               if one["type"] == "cart" for shard in one["shards"]),
                   "no shard of cart has an owner")
        assert ctl("wait", node=address).returncode == 0
        named = ctl("--timeout", "300ms", "wait", "--type", "cart", node=address)
        assert named.returncode == 5 and "nobody hosts the type cart" in named.stderr


# --- down ----------------------------------------------------------------------------------------

@pytest.fixture(name="pair")
def fixture_pair():
    # What is silent is removed by nobody but the operator.
    bounds = ("--stable-after", "60s", "--death-proof", "off")
    with Daemon("--name", "a", *bounds) as first:
        first.ready()
        with Daemon("--name", "b", "--seeds", first.address, *bounds) as second:
            second.ready()
            done = ctl("wait", "--members", "2", node=first.address)
            assert done.returncode == 0, done.stderr
            yield first, second


def test_down_of_a_living_node_needs_force(pair):
    node = pair[0].address
    for name in ("a", "b"):
        done = ctl("--json", "down", name, node=node)
        error = json.loads(done.stderr)["error"]
        assert done.returncode == error["exit_code"] == 1 and done.stdout == ""
        assert f"{name} is reachable: its 0 entities" in error["text"]
        assert "--force" in error["text"]
    assert len(ctl_json("members", node=node)) == 2
    assert ctl_json("down", "--force", "b", node=node) == {"down": "b"}


def test_down_of_a_silent_node_does_not(pair):
    first, second = pair
    second.send(signal.SIGSTOP)
    wait_until(lambda: any(not one["reachable"] for one in ctl_json("members", node=first.address)),
               "b is unreachable")
    done = ctl("down", "b", node=first.address)
    assert (done.returncode, done.stdout) == (0, "b is marked down\n"), done.stderr


# --- surroundings ------------------------------------------------------------------------------

def test_the_node_comes_from_the_environment_too(node):
    done = ctl("status", "--json", env=environment(SHARDBUS_NODE=f"tcp://127.0.0.1:1,{node}"))
    assert json.loads(done.stdout)["node"] == "a"


def test_output_is_the_same_with_and_without_a_terminal(node):
    ours, theirs = pty.openpty()
    chunks = []

    def read_all():
        # Reading a terminal that nobody has open any more is an error on Linux.
        try:
            while chunk := os.read(ours, 4096):
                chunks.append(chunk)
        except OSError:
            pass

    reader = threading.Thread(target=read_all)
    reader.start()
    subprocess.run([BIN / "shardbusctl", "--node", node, "shards"], stdout=theirs, check=True,
                   env=environment(), timeout=30)
    os.close(theirs)
    reader.join(30)
    os.close(ours)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    assert text == ctl("shards", node=node).stdout
    assert "\x1b" not in text


def test_help_lists_exit_codes_and_commands():
    text = ctl("--help").stdout
    for word in ("status", "members", "shards", "where", "tell", "ask", "down", "wait", "bench",
                 "Exit codes:"):
        assert word in text


def test_a_daemon_that_is_not_there_is_named_by_benchmarks():
    done = ctl("bench", "failover", env=environment(SHARDBUSD="/nope"))
    assert done.returncode == 1 and "/nope cannot be run: No such file" in done.stderr, done.stderr


# --- bench -------------------------------------------------------------------------------------

@pytest.mark.parametrize("layout, route", [("inprocess", "smart"), ("processes", "smart"),
                                           ("processes", "any")])
def test_bench_throughput_checks_itself(layout, route):
    result = ctl_json("bench", "throughput", "--nodes", "3", "--asks", "20000", "--entities", "200",
                      "--window", "64", "--layout", layout, "--route", route)
    assert result["asks"] == result["replies"] == 20000
    assert result["errors"] == result["duplicates"] == result["out_of_order"] == 0
    for key in ("wall_ms", "asks_per_s", "cpu_us_per_ask", "p50_us", "p99_us", "rss_mb"):
        assert result[key] > 0, key
    assert result["p50_us"] <= result["p99_us"] <= result["max_us"] * 1.04


def test_bench_throughput_is_held_against_bare_zeromq():
    result = ctl_json("bench", "throughput", "--asks", "5000", "--entities", "50", "--window", "32",
                      "--layout", "processes", "--rounds", "3", "--floor")
    assert result["asks"] == result["replies"] == 15000 and result["rounds"] == 3
    for name in ("rate", "cpu", "p50", "p99"):
        ratio = f"{name}_ratio_to_floor"
        assert 0 < result[f"{ratio}_min"] <= result[ratio] <= result[f"{ratio}_max"]
    assert result["floor_asks_per_s"] > 0 and result["floor_cpu_us"] > 0


def test_a_client_that_stands_still_holds_up_no_move():
    result = ctl_json("bench", "handoff", "--messages", "5000", "--moves", "10", "--joins", "1",
                      "--entities", "20", "--shards", "16", "--frozen-clients", "2")
    assert result["moves"] == 10 and result["frozen_clients"] == 2
    assert result["lost"] == result["duplicates"] == result["out_of_order"] == 0
    # Whoever waited for a client's fence would wait until its session ends.
    assert result["pause_max_ms"] < 2000


def test_bench_handoff_checks_itself():
    result = ctl_json("bench", "handoff", "--messages", "20000", "--moves", "10", "--joins", "1",
                      "--shards", "16", "--entities", "50", "--rate", "20000")
    assert result["messages"] >= 20000 and result["asks"] == result["replies"] > 0
    assert (result["moves"], result["joins"], result["leaves"]) == (10, 1, 1)
    assert result["lost"] == result["duplicates"] == result["out_of_order"] == result["errors"] == 0
    assert result["moved_entities"] > 0
    assert 0 < result["pause_p50_ms"] <= result["pause_p99_ms"] <= result["pause_max_ms"] * 1.04


@pytest.mark.parametrize("kind", ["kill", "stop"])
def test_bench_failover_checks_itself(kind):
    done = ctl("--json", "bench", "failover", "--runs", "1", "--entities", "50", "--signal", kind)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    result = json.loads(done.stdout)
    assert result["runs"] == 1 and result["asks"] > 0 and result["max_ms"] > 0
    assert result["unanswered"] == result["lost_acknowledged"] == 0
