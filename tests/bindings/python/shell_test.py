"""python3 -m shardbus, as a process."""

import json
import os
import pathlib
import subprocess
import sys

import shardbus
from conftest import ROOT
from fake_broker import FakeBroker

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")}
HERE = pathlib.Path(__file__).parent


def shell(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "shardbus", *arguments],
                          env={**ENVIRONMENT, **more},
                          capture_output=True, text=True, timeout=60, check=False)


def test_ask_and_tell():
    with FakeBroker() as broker:
        to = ("--connect", broker.address)
        assert shell(*to, "tell", "counter", "c", "add", '{"amount": 3}').returncode == 0
        broker.wait_until(lambda: broker.seen[1] == 1)
        done = shell(*to, "ask", "counter", "c", "get")
        assert (done.returncode, json.loads(done.stdout)) == (0, 3)
        done = shell("ask", "counter", "c", "get", SHARDBUS_NODE=broker.address)
        assert (done.returncode, json.loads(done.stdout)) == (0, 3)
        failed = shell(*to, "ask", "counter", "c", "fly")
        assert failed.returncode == 1
        assert failed.stderr == "error: no_such_method: fly\n"


def test_worker():
    with FakeBroker() as broker:
        command = [sys.executable, "-m", "shardbus", "--connect", broker.address, "worker",
                   "shell_entities:Upper"]
        with subprocess.Popen(command, env=ENVIRONMENT, cwd=HERE) as process:
            try:
                broker.wait_until(lambda: broker.welcomed == 1, 30)
                with shardbus.connect(broker.address) as bus:
                    assert bus.entity("upper", "u").ask("say", {"text": "tea"}) == "TEA"
            finally:
                process.terminate()


def test_a_missing_package_is_named_with_where_it_comes_from(tmp_path):
    (tmp_path / "msgpack.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'msgpack'\", name='msgpack')\n")
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    done = shell("--help", PYTHONPATH=path)
    assert done.returncode != 0 and "Debian: python3-zmq, python3-msgpack" in done.stderr


def test_mistakes_are_one_line():
    done = shell("worker", "no_such_module:Upper")
    assert done.returncode == 2
    assert done.stderr == "error: No module named 'no_such_module'\n"
