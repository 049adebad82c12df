"""Fails on C++ files that clang-format would change; with --fix lets it change them."""

import re
import subprocess
import sys

from common import CPP_SUFFIXES, ROOT, finish, name_of, project_files


def main():
    files = [name_of(path) for path in project_files(*CPP_SUFFIXES)]
    if not files:
        return
    if "--fix" in sys.argv:
        subprocess.run(["clang-format", "-i", *files], cwd=ROOT, check=True)
        return
    run = subprocess.run(["clang-format", "--dry-run", *files], cwd=ROOT, capture_output=True,
                         text=True, check=False)
    found = re.findall(r"^([^:\n]+):(\d+):\d+: (?:warning|error): ", run.stderr, re.MULTILINE)
    lines = {}
    for file, line in found:
        lines.setdefault(file, []).append(line)
    problems = [f"{file}:{places[0]}: {len(places)} place(s) are not formatted"
                for file, places in lines.items()]
    if run.returncode and not problems:
        problems = [run.stderr]
    finish(problems, "Run: /usr/bin/python3 tests/tidy/check_format.py --fix")


if __name__ == "__main__":
    main()
