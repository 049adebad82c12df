"""Fails on functions, files and lines that are too long; ratchet.txt lists what was before."""

import ast

from common import CPP_SUFFIXES, ROOT, finish, name_of, project_files
from cpp_functions import functions

FUNCTION_LINES = 70
LINE_COLUMNS = 100
SOURCE_SUFFIXES = (".cpp", ".c", ".py", ".sh", ".cmake", ".js", ".mjs", ".ts", ".go", ".rs",
                   ".java", "")


def file_limit(path):
    """Gives the longest allowed file: headers are read by everybody, so they are shorter."""
    if path.suffix in (".hpp", ".h"):
        return 400 if name_of(path).startswith("include/") else 300
    return 800 if name_of(path).startswith("tests/") else 600


def is_source(path):
    if path.suffix == "":
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    return path.suffix in SOURCE_SUFFIXES + CPP_SUFFIXES or path.name == "CMakeLists.txt"


def long_functions(path, text):
    """Yields (name, line, length) of each function of a C++ or Python file."""
    if path.suffix in CPP_SUFFIXES:
        for function in functions(text):
            yield function.name, function.first_line, function.lines
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text, str(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def measure(path):
    """Yields (what, number, limit, place, advice) for all that is too long in one file."""
    name, text = name_of(path), path.read_text()
    lines = text.splitlines()
    if len(lines) > file_limit(path):
        yield ("file", len(lines), file_limit(path), name, "split it by decision, not by part")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_COLUMNS:
            yield (f"line:{line.strip()[:20]}", len(line), LINE_COLUMNS, f"{name}:{number}",
                   "break the line")
    for function, number, length in long_functions(path, text):
        if length > FUNCTION_LINES:
            yield (f"function:{function}", length, FUNCTION_LINES, f"{name}:{number}",
                   "take its steps out into functions with names (aim: 25 lines)")


def read_ratchet():
    ratchet = {}
    for line in (ROOT / "tests/tidy/ratchet.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            path, rest = line.split(None, 1)
            what, number = rest.rsplit(None, 1)
            ratchet[path, what] = int(number)
    return ratchet


def main():
    ratchet, seen, problems = read_ratchet(), set(), []
    for path in filter(is_source, project_files()):
        for what, number, limit, place, advice in measure(path):
            key = (name_of(path), what)
            if number > ratchet.get(key, limit):
                kind = what.split(":")[0]
                problems.append(f"{place}: {what} has {number}, limit {limit} per {kind}: {advice}")
            elif key in ratchet and number == ratchet[key]:
                seen.add(key)
    for key in sorted(set(ratchet) - seen):
        problems.append(f"ratchet.txt: {' '.join(key)} is better now; lower or remove its line")
    finish(problems, "Limits: functions 70 lines, sources 600, tests 800, headers 300 "
           "(public 400), lines 100 columns.")


if __name__ == "__main__":
    main()
