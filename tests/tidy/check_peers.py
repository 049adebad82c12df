"""Fails if tests/PEERS.md names a test that does not exist, or loses a behaviour of the peers."""

import collections
import re

from common import ROOT, finish

TESTS = ROOT / "tests"
NUMBERS = {"MV": [(1, 25), (46, 55)],
           "P": [(1, 66), (72, 80), (97, 100), (107, 111)]}
KIND = re.compile(r"ours|not ours|waits [1-7]")
ROW = re.compile(r"^\| (MV|P)(\d+) \|(.*)\|$", re.MULTILINE)
CODE = re.compile(r"`([^`]*)`")


def wanted():
    return [f"{letters}{number}" for letters, ranges in NUMBERS.items()
            for first, last in ranges for number in range(first, last + 1)]


def is_reference(code):
    """Tells the name of a test from other code that a row may quote."""
    return "/" in code or "::" in code or code.startswith("mark ")


def names_in(path):
    """Gives the names of all tests of one file."""
    text = path.read_text()
    if path.suffix == ".py":
        return set(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))
    found = re.findall(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", text,
                       re.MULTILINE)
    return {".".join(pair) for pair in found}


def wrong_with(reference):
    """Gives what is wrong with the name of a test, or None."""
    if reference.startswith("mark "):
        marks = (ROOT / "lib/base/marks.def").read_text()
        known = f"SHARDBUS_MARK({reference.removeprefix('mark ')}," in marks
        return None if known else "is no mark in lib/base/marks.def"
    file, _, name = reference.partition("::")
    path = TESTS / file
    if not path.is_file():
        return "has no such file below tests"
    if path.suffix == ".txt" and file.startswith("golden/") and not name:
        return None
    return None if name in names_in(path) else "has no such test in its file"


def check_row(number, cells):
    """Yields what is wrong with one row: `cells` are behaviour, kind, and tests or reason."""
    if len(cells) != 3:
        yield f"{number}: has {len(cells) + 1} cells instead of 4"
        return
    behaviour, kind, tests = cells
    if not behaviour:
        yield f"{number}: says no behaviour"
    if not KIND.fullmatch(kind):
        yield f"{number}: '{kind}' is no kind"
    references = [code for code in CODE.findall(tests) if is_reference(code)]
    if kind == "ours" and not references:
        yield f"{number}: names no test"
    if kind == "not ours" and not tests:
        yield f"{number}: gives no reason"
    for reference in references:
        wrong = wrong_with(reference)
        if wrong:
            yield f"{number}: `{reference}` {wrong}"


def check(text):
    """Yields what is wrong with the table."""
    found = collections.Counter()
    for letters, number, rest in ROW.findall(text):
        found[letters + number] += 1
        yield from check_row(letters + number, [cell.strip() for cell in rest.split("|")])
    for number in wanted():
        if found[number] != 1:
            yield f"{number}: has {found[number]} rows instead of 1"
    for number in found.keys() - set(wanted()):
        yield f"{number}: is no number of the table"


def main():
    problems = [f"tests/PEERS.md: {problem}"
                for problem in check((TESTS / "PEERS.md").read_text())]
    finish(problems, "A row names tests that exist, or says why there is none.")


if __name__ == "__main__":
    main()
