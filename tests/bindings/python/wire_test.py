"""The Python codec against the conformance vectors that every binding shares."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from shardbus import hashing, routing, wire
from shardbus.wire import Kind

ROOT = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
VECTORS = ROOT / "tests/vectors"
# What a client never receives, it need not check; what is about owners is read by routing.py.
NOT_OURS = ("hello", "link", "here", "table", "moved", "stream", "answer", "begin", "digest",
            "offer")
NODE_A, NODE_B = 3238988543385071, 2749696258763733


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
    for folder in ("messages", "replies", "session", "workers", "routing"):
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
    ("fence", routing.fence("cart", 3, 21, (1 << 52) + 1, routing.Entry(NODE_B, (3, NODE_A, 5)))),
])
def test_writes_what_the_vectors_have(name, written):
    assert written == bytes_of(name)


def test_reads_an_ask():
    message = read_one(bytes_of("ask")).value
    assert message == wire.Message(Kind.ASK, 7, "counter", b"cart-42", "get", 5000, None, b"\xc0")


def test_reads_what_is_said_about_owners():
    body = read_one(bytes_of("table")).body
    assert routing.table_version(body) == (3, NODE_A, 12)
    assert routing.table_nodes(body) == {NODE_A, NODE_B}
    assert routing.parse_table(body) == (
        3,
        {NODE_A: "tcp://10.0.0.1:7400", NODE_B: "tcp://10.0.0.1:7410"},
        {"cart": [(NODE_A, (3, NODE_A, 1)), (NODE_B, (3, NODE_A, 2)), (None, None),
                  (None, (2, NODE_B, 9))],
         "user": [(NODE_B, (1, NODE_B, 1))]})
    assert routing.parse_table(read_one(bytes_of("table: empty")).body) == (0, {}, {})
    assert routing.parse_moved(read_one(bytes_of("moved")).body) == (
        "cart", 3, (NODE_B, (3, NODE_A, 5)), "tcp://10.0.0.1:7410")
    assert routing.parse_moved(read_one(bytes_of("moved: to nobody")).body).entry == (None, None)
    for name in ("fence_ok", "path_lost"):
        assert routing.parse_fence_answer(read_one(bytes_of(name)).body) == (
            "cart", 3, 21, (3, NODE_A, 5), NODE_B)


@pytest.mark.parametrize("vector", vectors("refused"))
def test_refuses_what_is_said_wrongly_about_owners(vector):
    parser = {"table": routing.parse_table, "moved": routing.parse_moved}.get(
        vector["name"].split(":")[0])
    if parser is not None:
        with pytest.raises(ValueError) as caught:
            parser(read_one(bytes.fromhex(vector["hex"])).body)
        assert caught.value.error == vector["error"]


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
