"""The examples of the README run as they stand."""

import re

import shardbus
from conftest import ROOT
from fake_broker import FakeBroker

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "bindings/python/README.md").read_text(), re.S)
ADDRESS = "tcp://127.0.0.1:7400"


def test_calls(capsys):
    with FakeBroker() as broker:
        exec(BLOCKS[0].replace(ADDRESS, broker.address), {})
    assert capsys.readouterr().out == "3\n"


def test_asyncio(capsys):
    lines = BLOCKS[1].replace("\n", "\n    ")
    with FakeBroker() as broker:
        code = f"import asyncio, shardbus\nasync def main():\n    {lines}\nasyncio.run(main())\n"
        exec(code.replace(ADDRESS, broker.address), {})
    assert capsys.readouterr().out == "0\n"


def test_host():
    names = {}
    exec(BLOCKS[2].rsplit("\nshardbus.Worker", 1)[0], names)
    with FakeBroker() as broker, shardbus.Worker(broker.address, [names["Cart"]]):
        with shardbus.connect(broker.address) as bus:
            assert bus.entity("cart", "c").ask("add", {"name": "tea"}) == 1
