"""The raw client against a real shardbusd."""

import pathlib
import subprocess
import sys

import pytest

from daemons import BIN, Daemon

HERE = pathlib.Path(__file__).parent


@pytest.fixture(name="address")
def fixture_address():
    if not (BIN / "shardbusd").exists():
        pytest.skip("shardbusd is not built yet")
    with Daemon("--name", "raw-test") as daemon:
        yield daemon.ready().address


def test_raw_client(address):
    done = subprocess.run([sys.executable, HERE / "raw_client.py", address], capture_output=True,
                          text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
