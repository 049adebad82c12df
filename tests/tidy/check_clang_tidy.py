"""Runs clang-tidy over lib and bin. A result is kept until something that it depends on changes.

The key of a result is a hash of the file, of every project header that it includes directly or
not, of its compile command, of .clang-tidy and of clang-tidy itself; results lie below build/.
"""

import functools
import hashlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from common import BUILD, ROOT, finish, name_of

CACHE = ROOT / "build" / "tidy-cache"
INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
# The database was written for GCC: its -Werror and its newer flags are not clang's business.
EXTRA = ["--extra-arg=-Wno-error", "--extra-arg=-Wno-unknown-warning-option", "--quiet",
         f"--header-filter=^{re.escape(str(ROOT))}/(lib|include|bin)/"]


@functools.cache
def read(path):
    return path.read_bytes()


@functools.cache
def resolve(header, folder):
    """Finds an include inside the project; None for what comes from outside."""
    for base in (folder, ROOT / "include", ROOT / "lib", ROOT / "bin"):
        if (base / header).is_file():
            return (base / header).resolve()
    return None


def with_headers(path):
    """Gives the file and all project headers behind it, in a fixed order."""
    found, todo = set(), [path]
    while todo:
        current = todo.pop()
        if current in found:
            continue
        found.add(current)
        for header in INCLUDE.findall(read(current)):
            target = resolve(header.decode(), current.parent)
            if target:
                todo.append(target)
    return sorted(found)


@functools.cache
def tool_key():
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    return version + read(ROOT / ".clang-tidy") + repr(EXTRA).encode()


def key_of(path, command):
    digest = hashlib.sha256(tool_key() + command.encode())
    for file in with_headers(path):
        digest.update(name_of(file).encode() + b"\0" + read(file))
    return digest.hexdigest()


def compile_commands():
    """Gives {file: command} of our translation units; generated files are not ours to judge."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    commands = {}
    for entry in entries:
        path = (ROOT / entry["file"]).resolve()
        inside = path.is_relative_to(ROOT / "lib") or path.is_relative_to(ROOT / "bin")
        if inside and path.suffix == ".cpp" and path.exists():
            commands[path] = entry["command"]
    return commands


def run_on(job):
    path, command = job
    stored = CACHE / key_of(path, command)
    if stored.exists():
        return stored.read_text()
    print(f"checking {name_of(path)}", flush=True)
    run = subprocess.run(["clang-tidy", "-p", str(BUILD), *EXTRA, str(path)], cwd=ROOT,
                         capture_output=True, text=True, check=False)
    output = run.stdout
    if run.returncode and not output.strip():
        output = f"{name_of(path)}: error: clang-tidy failed:\n{run.stderr}"
    CACHE.mkdir(parents=True, exist_ok=True)
    partial = stored.with_suffix(f".{path.stem}.partial")
    partial.write_text(output)
    partial.replace(stored)
    return output


def findings(output):
    """Splits the output into findings, each with its notes, without the machine's folder."""
    parts = re.split(r"(?m)^(?=\S+:\d+:\d+: (?:warning|error): )", output)
    return [part.strip().replace(f"{ROOT}/", "") for part in parts if part.strip()]


def main():
    if not (BUILD / "compile_commands.json").exists():
        print(f"no compile_commands.json in {BUILD}: configure first (cmake --preset release)")
        sys.exit(1)
    with ThreadPoolExecutor(max_workers=2) as pool:
        outputs = list(pool.map(run_on, sorted(compile_commands().items())))
    # A finding in a header comes back from every file that includes it.
    problems = dict.fromkeys(finding for output in outputs for finding in findings(output))
    finish(list(problems), "Checks and naming rules: .clang-tidy. A false alarm is silenced where "
           "it stands, by // NOLINT(check-name) and the reason.")


if __name__ == "__main__":
    main()
