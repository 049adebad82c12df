"""shardbusd as a process: configuration, start, signals, exit codes (README of bin, H113, H145)."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import time

import pytest

from daemons import BIN, Daemon, ctl, ctl_json, environment, free_port, run_daemon
from raw_peer import GREETED, HERE, REPLY, WHO, RawPeer, ask, pack


def one_error(done, code):
    """Checks for one clear line on stderr, and gives it."""
    lines = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert len(lines) == 1 and lines[0].startswith("shardbusd: error: "), done.stderr
    assert done.stdout == ""
    return lines[0]


# --- configuration -----------------------------------------------------------------------------

def test_print_config_tells_where_each_value_came_from(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text("# a comment\nworkers = 2\nsessions = 20\n")
    done = run_daemon("--print-config", "--config", str(file), "--workers", "3",
                      env=environment(SHARDBUS_SESSIONS="10", SHARDBUS_CLUSTER="orders"))
    assert done.returncode == 0, done.stderr
    lines = {line.split(" = ")[0]: line for line in done.stdout.splitlines()}
    assert lines["workers"].split() == ["workers", "=", "3", "#", "flag", "--workers"]
    assert lines["sessions"].endswith(f"# {file}:3")
    assert lines["cluster"].endswith("# environment SHARDBUS_CLUSTER")
    assert lines["listen"].endswith("# default")


def test_the_printed_config_is_a_config(tmp_path):
    first = run_daemon("--print-config", "--workers", "7", "--log-format", "json")
    file = tmp_path / "printed.toml"
    file.write_text(first.stdout)
    again = run_daemon("--print-config", "--json", "--config", str(file))
    values = {key: entry["value"] for key, entry in json.loads(again.stdout).items()}
    assert values["workers"] == 7 and values["log.format"] == "json"
    assert run_daemon("--check-config", "--config", str(file)).returncode == 0


def test_every_mistake_is_named_at_once_and_nothing_starts(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text("cluster = 'orders'\nsesions = 5\nworkers = 1\nworkers = 2\n"
                    "failure_timeout = 5\n[log]\nlisten = 'tcp://127.0.0.1:1'\n")
    for more in ([], ["--check-config"]):
        done = run_daemon("--config", str(file), "--worker", "1", "--ping-interval", "0s", *more,
                          env=environment(SHARDBUS_LISTNE="x"))
        assert done.returncode == 2 and done.stdout == ""
        found = done.stderr.splitlines()
        for part in (f"{file}:2: unknown key 'sesions'; did you mean 'sessions'?",
                     f"{file}:4: ", f"{file}:5: failure_timeout: 5 needs a unit, such as \"5s\"",
                     f"{file}:7: unknown key 'log.listen'", "did you mean SHARDBUS_LISTEN?",
                     "did you mean --workers?", "duration 100ms..60s"):
            assert any(part in line for line in found), (part, done.stderr)
        assert len(found) == 7, done.stderr


@pytest.mark.parametrize("arguments, part", [
    (["--listen", "tcp://0.0.0.0:7400"], "needs advertise"),
    (["--listen", "tcp://*:7400"], "needs advertise"),
    (["--listen", "tcp://127.0.0.1:65534"], "choose one below 65534")])
def test_check_config_refuses_what_the_start_refuses(arguments, part):
    for more in ([], ["--check-config"]):
        line = one_error(run_daemon(*arguments, *more), 2)
        assert "flag --listen: listen: " in line and part in line
    assert run_daemon("--check-config", "--advertise", "node1", "--listen",
                      "tcp://0.0.0.0:7400").returncode == 0


def test_check_config_counts_descriptors_as_the_start_does():
    one_error(run_daemon("--check-config", preexec_fn=limit_descriptors(2000)), 4)


def test_help_and_version():
    assert "Exit codes:" in run_daemon("--help").stdout
    assert run_daemon("--version").stdout.startswith("shardbusd 0.")


def test_a_reader_of_the_log_that_has_stopped_stops_nobody_else():
    reader, writer = os.pipe()
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        [BIN / "shardbusd", "--listen", f"tcp://127.0.0.1:{free_port()}", "--log-format", "json"],
        stdout=subprocess.PIPE, stderr=writer, env=environment())
    try:
        ready = process.stdout.readline().decode()
        assert ready.startswith("ready "), ready
        address = dict(field.split("=", 1) for field in ready.split()[1:])["listen"]
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        assert ctl_json("status", node=address)["ready"] is True
        assert ctl("cordon", "nobody", node=address).returncode == 1  # an event in the log
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


# --- start -------------------------------------------------------------------------------------

def test_ready_line_has_the_real_addresses():
    with Daemon("--name", "solo", "--cluster", "c1") as daemon:
        fields = daemon.ready().fields
        assert fields["name"] == "solo" and fields["cluster"] == "c1"
        assert int(fields["pid"]) == daemon.process.pid
        for key in ("listen", "peer", "gossip"):
            assert fields[key].startswith("tcp://127.0.0.1:"), fields
            assert not fields[key].endswith(":0")


def test_ready_line_also_goes_to_the_descriptor_of_a_supervisor():
    reader, writer = os.pipe()
    with Daemon("--ready-fd", str(writer), pass_fds=(writer,)) as daemon:
        os.close(writer)
        line = os.read(reader, 4096).decode()
        assert line.startswith("ready ") and line.endswith("\n")
        assert f"listen={daemon.ready().address}" in line
    os.close(reader)


def test_a_port_in_use_is_one_line_and_code_3():
    with Daemon() as first:
        address = first.ready().address
        assert address in one_error(run_daemon("--listen", address), 3)


def port_before_one_in_use(taken, offset):
    """Binds `taken`, and gives the port that lies `offset` before it, which is free."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port + offset))
            taken.listen()
            return port


@pytest.mark.parametrize("offset, option", [(1, "peer_listen"), (2, "gossip_listen")])
def test_a_port_in_use_that_nobody_wrote_down_says_where_it_comes_from(offset, option):
    with socket.socket() as taken:
        port = port_before_one_in_use(taken, offset)
        more = [] if offset == 1 else ["--peer-listen", f"tcp://127.0.0.1:{free_port()}"]
        done = run_daemon("--listen", f"tcp://127.0.0.1:{port}", *more)
        assert f"`{option}` sets another one" in one_error(done, 3)


@pytest.mark.parametrize("address", ["tcp://203.0.113.7:7400", "tcp://no-such-host.invalid:7400"])
def test_an_address_that_cannot_be_bound_is_one_line_and_code_3(address):
    assert address in one_error(run_daemon("--listen", address), 3)


def test_what_is_no_address_is_a_config_error():
    assert "tcp://HOST:PORT" in one_error(run_daemon("--listen", "127.0.0.1:7400"), 2)


def limit_descriptors(hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (min(64, hard), hard))


def test_too_few_descriptors_is_one_line_and_code_4():
    line = one_error(run_daemon(preexec_fn=limit_descriptors(2000)), 4)
    assert "2000" in line and "sessions to 1488 or less" in line


def test_the_soft_limit_of_descriptors_is_raised():
    with Daemon("--sessions", "100", preexec_fn=limit_descriptors(2000)) as daemon:
        daemon.ready()
        limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        assert limits == (2000, 2000)


def test_builtin_types_can_be_switched_off():
    with Daemon("--builtin-types", "off") as daemon:
        done = ctl("ask", "echo", "x", "hi", node=daemon.ready().address)
        assert done.returncode == 1 and "no_such_type" in done.stderr


def test_log_lines_are_json_if_asked_for():
    with Daemon("--log-format", "json") as daemon:
        daemon.ready()
        daemon.send(signal.SIGTERM)
        assert daemon.wait() == 0
        events = [json.loads(line)["event"] for line in daemon.log().splitlines()]
        assert "daemon.started" in events and "daemon.signal" in events


# --- seeds -------------------------------------------------------------------------------------

def test_the_first_seed_is_killed_and_started_again_with_the_same_command():
    addresses = [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    variables = environment(SHARDBUS_SEEDS=",".join(addresses))
    a, b, c = (Daemon("--name", name, listen=address, env=variables)
               for name, address in zip("abc", addresses))
    with a, b, c:
        a.ready()
        assert ctl("wait", "--members", "3", node=addresses[0]).returncode == 0
        cluster = ctl_json("status", node=addresses[0])["cluster_id"]
        a.send(signal.SIGKILL)
        a.wait()
        with Daemon("--name", "a", listen=addresses[0], env=variables) as again:
            again.ready()
            done = ctl("--timeout", "20s", "wait", "--members", "3", node=addresses[1])
            assert done.returncode == 0, done.stderr
            assert ctl_json("status", node=addresses[0])["cluster_id"] == cluster


def test_the_first_seed_founds_nothing_while_another_one_stands_still():
    addresses = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
    variables = environment(SHARDBUS_SEEDS=",".join(addresses))
    with Daemon("--name", "a", listen=addresses[0], env=variables) as a, \
            Daemon("--name", "b", listen=addresses[1], env=variables) as b:
        a.ready()
        b.ready()
        cluster = ctl_json("status", node=addresses[1])["cluster_id"]
        a.send(signal.SIGKILL)
        a.wait()
        # Stopped with a cluster of two it would give up its place, as the other one is the older.
        assert ctl("wait", "--members", "1", node=addresses[1]).returncode == 0
        b.send(signal.SIGSTOP)
        try:
            with Daemon("--name", "a", listen=addresses[0], env=variables) as again:
                again.wait_for_log(f"no answer from seeds {addresses[1]} (takes connections, but "
                                   "does not answer as a node)")
                b.send(signal.SIGCONT)
                again.ready()
                assert ctl_json("status", node=addresses[0])["cluster_id"] == cluster
        finally:
            b.send(signal.SIGCONT)


def test_a_founder_notices_another_cluster_at_one_of_its_seeds():
    late = f"tcp://127.0.0.1:{free_port()}"
    with Daemon("--name", "a", "--bootstrap=true", "--seeds", late) as founder:
        founder.ready()
        with Daemon("--name", "b", listen=late) as other:
            other.ready()
            founder.wait_for_log("join.two_clusters node=a b belongs to another cluster of the "
                                 "same name")


def test_a_node_without_seeds_says_what_that_means_and_the_last_line_is_stopped():
    with Daemon() as daemon:
        daemon.ready()
        daemon.send(signal.SIGTERM)
        assert daemon.wait() == 0
        assert "no seeds but this node: founds a cluster of its own" in daemon.log()
        assert " daemon.stopped " in daemon.log().splitlines()[-1]


@pytest.mark.parametrize("name, cluster, event, way_out", [
    ("first", "c", "join.refused", "choose another --name"),
    ("other", "d", "join.cluster_mismatch", "set --cluster")])
def test_a_refused_node_says_why_once_and_what_to_do(name, cluster, event, way_out):
    with Daemon("--name", "first", "--cluster", "c") as first:
        first.ready()
        with Daemon("--name", name, "--cluster", cluster, "--seeds", first.address) as refused:
            refused.wait_for_log(way_out)
            # It goes on trying meanwhile, several times a second.
            assert ctl("--timeout", "6s", "wait", "--members", "2", node=first.address
                       ).returncode == 5
            refused.send(signal.SIGTERM)
            assert refused.wait() == 0, refused.log()
            lines = refused.log().splitlines()
            assert len([line for line in lines if f" {event} " in line]) == 1, refused.log()
            for never in ("in a cluster yet", "left_unheard"):
                assert never not in refused.log()
        first.send(signal.SIGTERM)
        assert first.wait() == 0
        assert first.log().count(" join.refuse ") <= 1, first.log()


def test_who_waits_for_seeds_is_told_who_may_found_the_cluster():
    # Nobody listens on port 1 of this machine.
    with Daemon("--seeds", "tcp://127.0.0.1:1") as daemon:
        daemon.wait_for_log("only the first seed of the list, tcp://127.0.0.1:1, may found")


def test_seeds_of_a_file_are_read_anew_and_only_bootstrap_founds(tmp_path):
    seeds = tmp_path / "seeds"
    # Nobody listens on port 1 of this machine.
    seeds.write_text("# not yet\ntcp://127.0.0.1:1\n")
    with Daemon("--name", "second", "--seeds", f"file://{seeds}") as second:
        second.wait_for_log(f"file://{seeds} = tcp://127.0.0.1:1 (connection refused); trying on; "
                            "only a node with bootstrap may found the cluster")
        with Daemon("--name", "first", "--bootstrap=true", "--seeds", f"file://{seeds}") as first:
            first.ready()
            seeds.write_text(f"{first.address}\n")
            second.ready()
            done = ctl("wait", "--members", "2", node=first.address)
            assert done.returncode == 0, done.stderr


def test_a_seed_file_that_is_missing_is_named_and_founds_nothing(tmp_path):
    with Daemon("--bootstrap=true", "--seeds", f"file://{tmp_path}/none") as daemon:
        daemon.wait_for_log(f"no answer from seeds file://{tmp_path}/none ({tmp_path}/none: "
                            "No such file or directory); trying on")
        (tmp_path / "none").write_text("")
        daemon.ready()


def test_seeds_by_name_are_resolved():
    with Daemon("--name", "first") as first:
        first.ready()
        port = first.address.rpartition(":")[2]
        for number, seed in enumerate((f"dns://localhost:{port}", f"tcp://localhost:{port}"), 2):
            with Daemon("--name", f"n{number}", "--seeds", seed) as other:
                other.ready()
                done = ctl("wait", "--members", "2", node=first.address)
                assert done.returncode == 0, done.stderr
                other.send(signal.SIGTERM)
                assert other.wait() == 0, other.log()


def test_another_downing_policy_is_refused_with_both_values():
    with Daemon("--name", "first") as first:
        first.ready()
        with Daemon("--name", "second", "--seeds", first.address, "--downing",
                    "keep-oldest") as second:
            second.wait_for_log("downing policy: the cluster has keep-majority, node 'second' "
                                "has keep-oldest down_if_alone=true; set downing")


def test_below_min_members_nothing_is_given_out_and_status_says_so():
    address = f"tcp://127.0.0.1:{free_port()}"
    with Daemon("--name", "first", "--min-members", "2", listen=address) as first:
        first.wait_for_log("below minimum members: 1 of 2, not allocating")
        told = ctl_json("status", node=address)
        assert (told["ready"], told["held_back"], told["shards_owned"]) == (
            False, "below minimum members: 1 of 2, not allocating", 0)
        with Daemon("--name", "second", "--min-members", "2", "--seeds", address) as second:
            first.ready()
            second.ready()


# --- signals (H145) ----------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_leaves_in_order(number):
    with Daemon() as daemon:
        daemon.ready()
        daemon.send(number)
        assert daemon.wait() == 0, daemon.log()


def two_nodes(*arguments):
    """Gives two daemons of one cluster that agree on it."""
    first = Daemon("--name", "first", *arguments).ready()
    second = Daemon("--name", "second", "--seeds", first.address, *arguments).ready()
    done = ctl("wait", "--members", "2", node=first.address)
    assert done.returncode == 0, done.stderr
    return first, second


def test_leaving_hands_the_entities_over_with_their_state():
    first, second = two_nodes()
    with first, second:
        for i in range(40):
            done = ctl("ask", "counter", f"c{i}", "add", f'{{"amount": {i}}}', node=first.address)
            assert done.returncode == 0, done.stderr
        first.send(signal.SIGTERM)
        assert first.wait() == 0, first.log()
        for i in range(40):
            assert ctl_json("ask", "counter", f"c{i}", "get", node=second.address) == {"reply": i}


# With short settings the others remove a node long before the pause that is too long by default.
@pytest.mark.parametrize("flags", [(), ("--failure-timeout", "500ms", "--stable-after", "200ms")])
def test_a_node_that_lost_its_place_in_a_pause_answers_nothing_as_an_owner(flags):
    first, second = two_nodes(*flags)
    third = Daemon("--name", "third", "--seeds", first.address, *flags)
    with first, second, third:
        third.ready()
        ctl("wait", "--members", "3", node=first.address)
        mine = []
        for i in range(200):
            where = ctl_json("where", "counter", f"c{i}", node=first.address)
            if where["owner"] == "third":
                mine.append(f"c{i}")
            if len(mine) == 5:
                break
        for entity in mine:  # what only it knows
            assert ctl("ask", "counter", entity, "add", '{"amount": 7}',
                       node=first.address).returncode == 0
        with RawPeer(third.address) as peer:
            peer.greet("client")
            third.send(signal.SIGSTOP)
            for number, entity in enumerate(mine * 20):
                peer.send(ask(number, entity, "get", type_name="counter", flags=GREETED))
            done = ctl("wait", "--members", "2", "--timeout", "20s", node=first.address)
            assert done.returncode == 0, done.stderr
            third.send(signal.SIGCONT)
            third.wait_for_log("failure.self_paused")
            third.wait_for_log("membership.down_self")
            peer.send(pack(WHO, 0, None))  # answered behind all that came before
            answers = []
            while not answers or answers[-1][0] != HERE:
                answers.append(peer.receive())
            # It may be back already, and then the new owners answer, who know nothing.
            assert not [answer for answer in answers if answer[0] == REPLY and answer[3] != b"\x00"]


def test_nodes_that_leave_together_all_leave_in_order():
    nodes = two_nodes()
    with nodes[0], nodes[1]:
        for node in nodes:
            node.send(signal.SIGTERM)
        for node in nodes:
            assert node.wait() == 0, node.log()


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT),
                                     (signal.SIGTERM, signal.SIGTERM),
                                     (signal.SIGTERM, signal.SIGINT)])
def test_a_second_signal_stops_at_once(signals):
    first, second = two_nodes("--leave-timeout", "120s")
    with first, second:
        # The shards cannot be handed to a process that stands still.
        second.send(signal.SIGSTOP)
        first.send(signals[0])
        first.wait_for_log("leaving the cluster")
        begin = time.monotonic()
        first.send(signals[1])
        assert first.wait() == 5, first.log()
        assert time.monotonic() - begin < 2


def test_leaving_ends_at_its_deadline_with_code_6():
    first, second = two_nodes("--leave-timeout", "1s")
    with first, second:
        second.send(signal.SIGSTOP)
        begin = time.monotonic()
        first.send(signal.SIGTERM)
        assert first.wait() == 6, first.log()
        assert time.monotonic() - begin < 5


def test_the_first_seed_knows_itself_under_another_name():
    # Every node of a cluster gets the same list; its addresses need not be those that nodes bind.
    port = free_port()
    with Daemon("--name", "first", "--seeds", f"tcp://localhost:{port}",
                listen=f"tcp://127.0.0.1:{port}") as first:
        first.ready()
        with Daemon("--name", "second", "--seeds", f"tcp://localhost:{port}") as second:
            second.ready()


def test_a_signal_before_joining_ends_within_two_seconds():
    # Nobody listens on port 1 of this machine.
    with Daemon("--seeds", "tcp://127.0.0.1:1") as daemon:
        daemon.wait_for_log("daemon.started")
        begin = time.monotonic()
        daemon.send(signal.SIGINT)
        assert daemon.wait() == 0, daemon.log()
        assert time.monotonic() - begin < 2


def test_a_signal_during_a_move_to_this_node_leaves_in_order():
    with Daemon("--name", "first") as first:
        first.ready()
        for i in range(20):
            ctl("ask", "counter", f"c{i}", "add", '{"amount": 1}', node=first.address)
        with Daemon("--name", "second", "--seeds", first.address) as second:
            second.wait_for_log("daemon.started")
            second.send(signal.SIGTERM)
            assert second.wait() == 0, second.log()
        for i in range(20):
            assert ctl_json("ask", "counter", f"c{i}", "get", node=first.address) == {"reply": 1}
