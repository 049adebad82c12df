"""The raw client of tests/integration against the fake node: both are written from PROTOCOL.md."""

import subprocess
import sys

from conftest import ROOT
from fake_broker import FakeBroker


def test_raw_client():
    with FakeBroker() as broker:
        script = ROOT / "tests/integration/raw_client.py"
        done = subprocess.run([sys.executable, script, broker.address], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert broker.seen["worker has no credit"] == 0
