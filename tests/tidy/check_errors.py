"""Keeps every table of error codes equal to the registry, include/shardbus/errors.def.

A file of any language carries a generated block between two lines that contain
    errors.def:begin <format>        and        errors.def:end
(inside a comment of that language). --fix writes the blocks anew; without it, a block that differs
fails. The formats are the keys of FORMATS below.
"""

import re
import sys

from common import ROOT, finish, name_of, project_files

REGISTRY = ROOT / "include/shardbus/errors.def"
ROW = re.compile(r"^SHARDBUS_ERROR\((\d+), (\w+), (\w+), (\w+),\s*\"([^\"]*)\"\)", re.MULTILINE)
BLOCK = re.compile(r"^(?P<begin>[^\n]*errors\.def:begin (?P<format>\w+)[^\n]*\n)(?P<rows>.*?)"
                   r"(?P<end>^[^\n]*errors\.def:end\b)", re.MULTILINE | re.DOTALL)
RETRY = ("no", "same_call", "after_refresh")

FORMATS = {
    "markdown": "| {number} | `{name}` | {retry} | {yes_no} | {sentence} |",
    "c": "  SHARDBUS_ERROR_{upper} = {number}, /* {sentence} */",
    "python": '    ({number}, "{name}", "{retry}", {python_bool}, "{sentence}"),',
    "javascript": '  [{number}, "{name}", "{retry}", {bool}, "{sentence}"],',
    "go": '\t{{{number}, "{name}", "{retry}", {bool}, "{sentence}"}},',
    "java": '    {upper}({number}, "{name}", "{retry}", {bool}, "{sentence}"),',
    "rust": '    ({number}, "{name}", "{retry}", {bool}, "{sentence}"),',
}


def rows():
    for number, name, retry, may, sentence in ROW.findall(REGISTRY.read_text()):
        yield {"number": int(number), "name": name, "upper": name.upper(), "retry": retry,
               "bool": may, "python_bool": may.capitalize(),
               "yes_no": {"true": "yes", "false": "no"}.get(may, may), "sentence": sentence}


def check_registry(table):
    """Yields what is wrong with the registry itself."""
    if len(table) != REGISTRY.read_text().count("\nSHARDBUS_ERROR("):
        yield "errors.def: a row has not the form SHARDBUS_ERROR(1, name, retry, bool, \"text\")"
    for key in ("number", "name"):
        values = [row[key] for row in table]
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f"errors.def: {key} {value} is used twice"
    for row in table:
        if row["retry"] not in RETRY or row["bool"] not in ("true", "false"):
            yield f"errors.def: {row['name']}: retry is one of {RETRY}, then true or false"


def generate(table, style):
    return "".join(FORMATS[style].format(**row) + "\n" for row in table)


def check_blocks(table, path, fix):
    """Compares, or with `fix` rewrites, the generated blocks of one file."""
    text = path.read_text(errors="replace")
    problems = []

    def renew(match):
        style = match["format"]
        if style not in FORMATS:
            problems.append(f"{name_of(path)}: format {style} is not one of {', '.join(FORMATS)}")
            return match[0]
        if match["rows"] != generate(table, style):
            problems.append(f"{name_of(path)}: the {style} table of errors is out of date")
        return match["begin"] + generate(table, style) + match["end"]

    renewed = BLOCK.sub(renew, text)
    if fix and renewed != text:
        path.write_text(renewed)
        return []
    return problems


def main():
    if not REGISTRY.exists():
        return
    table, fix = list(rows()), "--fix" in sys.argv
    problems = list(check_registry(table))
    for path in project_files():
        if path != ROOT / "tests/tidy/check_errors.py" and b"errors.def:begin" in path.read_bytes():
            problems.extend(check_blocks(table, path, fix))
    finish(problems, "Run: /usr/bin/python3 tests/tidy/check_errors.py --fix")


if __name__ == "__main__":
    main()
