"""The Python codec against the conformance vectors that every binding shares."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from shardbus import hashing, wire
from shardbus.wire import Kind

ROOT = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
VECTORS = ROOT / "tests/vectors"
# What a client never receives, it need not check.
NOT_OURS = ("hello", "link", "here", "table", "moved", "stream", "answer", "begin", "digest",
            "offer")


def vectors(folder, leave_out=()):
    for path in sorted((VECTORS / folder).glob("*.json")):
        for vector in json.loads(path.read_text()):
            if vector["name"].startswith(tuple(leave_out)):
                continue
            yield pytest.param(vector, id=f"{path.stem}: {vector['name']}")


def jsonable(value):
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    return value


def read_one(data):
    items = list(wire.read_frame(data))
    assert len(items) == 1
    return items[0]


@pytest.mark.parametrize("vector", vectors("valid"))
def test_valid(vector):
    data = bytes.fromhex(vector["hex"])
    got = read_one(data)
    assert isinstance(got, wire.Envelope)
    assert jsonable([int(got.kind), got.flags, got.correlation, *got.body]) == vector["envelope"]
    assert got.size == len(data)


@pytest.mark.parametrize("vector", vectors("refused", NOT_OURS))
def test_refused(vector):
    got = read_one(bytes.fromhex(vector["hex"]))
    assert isinstance(got, wire.Bad)
    assert got.error == vector["error"]


@pytest.mark.parametrize("vector", vectors("valid"))
def test_every_prefix_is_refused(vector):
    data = bytes.fromhex(vector["hex"])
    for size in range(1, min(len(data), 200)):
        assert read_one(data[:size]) == wire.Bad("malformed", None)


def bytes_of(name):
    for folder in ("messages", "replies", "session", "workers"):
        for vector in json.loads((VECTORS / f"valid/{folder}.json").read_text()):
            if vector["name"] == name:
                return bytes.fromhex(vector["hex"])
    raise KeyError(name)


@pytest.mark.parametrize("name, written", [
    ("tell", wire.tell("counter", b"cart-42", "add", wire.pack({"amount": 3}), flags=0)),
    ("ask", wire.ask(7, "counter", b"cart-42", "get", b"\xc0", 5000, flags=0)),
    ("reply", wire.reply(7, b"\x03")),
    ("reply: to a port", wire.reply([3238988543385071, 17], b"\xc0")),
    ("error", wire.error(7, 3, "gett")),
    ("ping", wire.envelope(Kind.PING)),
    ("goodbye", wire.envelope(Kind.GOODBYE)),
    ("credit", wire.envelope(Kind.CREDIT, 2048, 8 << 20)),
    ("released: nothing to save", wire.envelope(Kind.RELEASED, "cart", 3, [], False)),
])
def test_writes_what_the_vectors_have(name, written):
    assert written == bytes_of(name)


def test_reads_an_ask():
    message = read_one(bytes_of("ask")).value
    assert message == wire.Message(Kind.ASK, 7, "counter", b"cart-42", "get", 5000, None, b"\xc0")


def test_a_frame_goes_on_behind_what_is_too_large_or_unknown():
    ping = wire.envelope(Kind.PING)
    large = wire.tell("t", b"x" * 257, "m", b"")
    items = list(wire.read_frame(large + wire.pack([99, 0, 5]) + ping + b"\xc1" + ping))
    assert items[:2] == [wire.Bad("too_large", None), wire.Bad("unknown_kind", 5)]
    assert items[2].kind == Kind.PING
    assert items[3:] == [wire.Bad("malformed", None)]


def test_error_texts_are_cut_between_characters():
    text = read_one(wire.error(1, 5, "x" * 1023 + "€")).value.text
    assert text == "x" * 1023


def test_shards():
    for vector in json.loads((VECTORS / "shards.json").read_text()):
        data = bytes.fromhex(vector["id"]["bin"])
        assert f"{hashing.fnv1a64(hashing.hash_tag(data)):016x}" == vector["hash"]
        assert hashing.shard_of(data, vector["shard_count"]) == vector["shard"]


def test_node_keys():
    for vector in json.loads((VECTORS / "node_keys.json").read_text()):
        assert hashing.node_key(vector["name"], vector["incarnation"]) == vector["key"]


def test_error_table_is_that_of_the_registry():
    script = ROOT / "bindings/python/generate_errors.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
