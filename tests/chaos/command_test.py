"""The command `run`: exit codes, what it prints, and a short run without namespaces."""

import json
import os
import subprocess
import sys

import pytest

from cluster import HERE
from daemons import BIN


def chaos(*arguments, **variables):
    return subprocess.run([sys.executable, HERE / "run", *arguments], capture_output=True,
                          text=True, timeout=110, check=False, env={**os.environ, **variables})


@pytest.mark.parametrize("arguments, part", [
    (["--faults", "kil"], "unknown fault 'kil'; known: kill, worker"),
    (["--nodes", "2"], "invalid choice: 2"),
    (["--minute"], "expected one argument"),
    (["--minutes", "0"], "0 is not above 0"),
    (["--rounds", "-1"], "-1 is not above 0"),
    (["--downing", "keep-everything-and-nothing"], "is not one of keep-majority")])
def test_wrong_usage_ends_with_2(arguments, part):
    done = chaos(*arguments)
    assert done.returncode == 2 and part in done.stderr, done.stderr


def test_what_cannot_run_here_ends_with_77_and_says_why(tmp_path):
    done = chaos(SHARDBUS_BIN_DIR=str(tmp_path))
    assert done.returncode == 77 and f"no {tmp_path}/shardbusd" in done.stdout
    done = chaos("--no-namespaces", "--faults", "drop,one-way")
    assert done.returncode == 77 and "drop, one-way: needs namespaces" in done.stdout


def test_a_short_run_without_namespaces_holds_and_tells_what_it_left_out():
    done = chaos("--no-namespaces", "--rounds", "2", "--round-seconds", "3", "--seed", "3",
                 "--faults", "kill,drop,rolling", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["held"] and not result["broken"] and result["repeat"] is None
    assert result["faults"] == ["kill", "rolling"] and list(result["not_run"]) == ["drop"]
    planned, faults = result["rounds"]
    assert planned["planned"] and len(planned["faults"]) >= 3 and not faults["planned"]
    assert result["counts"]["ask.reply"] > 100
    assert "round 1: rolling restart" in done.stderr and "sent" in done.stderr


def test_a_run_that_breaks_ends_with_1_and_tells_how_to_repeat_it(tmp_path):
    # A broken product: its node never leaves in order.
    (tmp_path / "shardbusctl").symlink_to(BIN / "shardbusctl")
    broken = tmp_path / "shardbusd"
    broken.write_text(f"""#!/bin/bash
trap 'kill -9 $node; wait $node; exit 6' TERM
setpriv --pdeathsig KILL {BIN}/shardbusd "$@" & node=$!
wait $node
""")
    broken.chmod(0o755)
    done = chaos("--no-namespaces", "--faults", "rolling", "--rounds", "1", "--seed", "5",
                 SHARDBUS_BIN_DIR=str(tmp_path), TMPDIR=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert "were to leave in order and ended with [6]" in done.stdout
    assert "repeat it with: tests/chaos/run --seed 5 " in done.stderr
