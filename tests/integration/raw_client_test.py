"""The raw client against a real shardbusd."""

import os
import pathlib
import selectors
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
BIN = pathlib.Path(os.environ.get("SHARDBUS_BIN_DIR", HERE.parents[1] / "build/release/bin"))
READY_SECONDS = 20


def ready_line(process):
    """Waits for the line that says where the node listens."""
    deadline = time.monotonic() + READY_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0, deadline - time.monotonic())):
            line = process.stdout.readline()
            if line.startswith("ready "):
                return dict(word.split("=", 1) for word in line.split()[1:])
            assert line, "shardbusd ended before it was ready"
    raise TimeoutError("shardbusd was not ready in time")


@pytest.fixture(name="address")
def fixture_address():
    program = BIN / "shardbusd"
    if not program.exists():
        pytest.skip(f"{program} is not built yet")
    command = [program, "--listen", "tcp://127.0.0.1:0", "--name", "raw-test"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ready_line(process)["listen"]
        finally:
            process.terminate()


def test_raw_client(address):
    done = subprocess.run([sys.executable, HERE / "raw_client.py", address], capture_output=True,
                          text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
