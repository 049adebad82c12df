"""PROTOCOL.md against the code: kinds, limits, errors, shards and examples cannot drift apart."""

import json
import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
DOCUMENT = (ROOT / "lib/wire/PROTOCOL.md").read_text()
VECTORS = ROOT / "tests/vectors"


def rows_below(heading):
    """Gives the cells of the first table below a heading, without its head."""
    text = DOCUMENT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.search(r"((?:^\|.*\|\n)+)", text, re.M).group(1).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def kinds_of_code():
    text = (ROOT / "lib/wire/envelope.hpp").read_text()
    block = text.split("enum class Kind", 1)[1].split("};", 1)[0]
    return {(int(number), name) for name, number in re.findall(r"(\w+) = (\d+),", block)}


def limits_of_code():
    limits = {}
    text = (ROOT / "lib/wire/limits.hpp").read_text()
    for name, value in re.findall(r"constexpr std::uint32_t (k\w+) = ([^;]+);", text):
        value = re.sub(r"(\d+)U\b", r"\1", value.replace("'", ""))
        limits[name] = eval(value, {"__builtins__": {}}, dict(limits))  # numbers, << + -
    return {re.sub(r"([A-Z])", r"_\1", name[1:]).lower()[1:]: value
            for name, value in limits.items()}


def errors_of_code():
    pattern = r'^SHARDBUS_ERROR\((\d+), (\w+), (\w+), (\w+), "(.*)"\)$'
    text = (ROOT / "include/shardbus/errors.def").read_text()
    return [[number, name, retry, "yes" if happened == "true" else "no", sentence]
            for number, name, retry, happened, sentence in re.findall(pattern, text, re.M)]


def valid_hex():
    return {vector["hex"] for path in (VECTORS / "valid").glob("*.json")
            for vector in json.loads(path.read_text())}


def test_kinds():
    assert {(int(row[0]), row[1]) for row in rows_below("6. Kinds")} == kinds_of_code()


def test_counted_kinds():
    counted = {int(row[0]) for row in rows_below("6. Kinds") if row[3] == "yes"}
    assert counted == {*range(1, 5), *range(40, 45)}


def test_each_kind_is_described():
    details = DOCUMENT.split("\n### 6.1", 1)[1]
    for number, name in kinds_of_code():
        assert re.search(rf"\b{name} \({number}\)", details), f"{name} ({number}) has no layout"


def test_limits():
    assert {row[0]: int(row[1]) for row in rows_below("13. Limits")} == limits_of_code()


def test_errors():
    assert rows_below("14. Errors") == errors_of_code()


def test_named_errors_exist():
    names = {row[1] for row in errors_of_code()}
    said = set(re.findall(r"[Ee]rror `(\w+)`", DOCUMENT))
    assert said and said <= names, f"unknown: {said - names}"


def test_shards():
    known = {(bytes.fromhex(vector["id"]["bin"]).decode(), vector["hash"], str(vector["shard"]))
             for vector in json.loads((VECTORS / "shards.json").read_text())
             if vector["shard_count"] == 256 and vector["id"]["bin"] != "00ff80"}
    for row in rows_below("7. Shards"):
        assert (row[0].strip("`"), row[2], row[3]) in known


def test_node_keys():
    known = [[vector["name"], str(vector["incarnation"]), str(vector["key"])]
             for vector in json.loads((VECTORS / "node_keys.json").read_text())]
    text = DOCUMENT.split("| name | incarnation | key |", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.strip().splitlines()[1:]]
    assert rows and all(row in known for row in rows)


@pytest.mark.parametrize("example", re.findall(r"```hex\n(.*?)```", DOCUMENT, re.S))
def test_example_is_a_vector(example):
    assert "".join(example.split()) in valid_hex()


def test_links_lead_somewhere():
    headings = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                for heading in re.findall(r"^#+ (.*)$", DOCUMENT, re.M)}
    for anchor in re.findall(r"\]\(#([^)]+)\)", DOCUMENT):
        assert anchor in headings, anchor
