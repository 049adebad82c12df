"""The session in README.md can be pasted, and gives the output shown.

The ports are replaced by free ones, so that the test can run beside others; the rest is run as it
stands, in one bash, as a reader would paste it.
"""

import os
import re
import subprocess

from daemons import BIN, environment, free_port

ROOT = os.environ.get("SHARDBUS_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "../.."))


def session():
    """Commands of the README's console block, and the lines that it shows as their output."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        block = re.search(r"```console\n(.*?)```", file.read(), re.S).group(1)
    commands, shown = [], []
    for line in block.splitlines():
        (commands if line.startswith("$ ") else shown).append(line.removeprefix("$ "))
    return commands, shown


def test_readme_session(tmp_path):
    commands, shown = session()
    text = "\n".join(c for c in commands if not c.startswith("export PATH"))
    used = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))
    for old, new in ((port, free_port()) for port in used):
        text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    first = re.search(r"--listen (tcp://[0-9.:]+)", text).group(1)
    variables = environment(PATH=f"{BIN}:{os.environ['PATH']}", SHARDBUS_NODE=first)
    # A job-control shell, since the session ends its brokers by `kill %1`.
    done = subprocess.run(
        ["bash", "-c", f"set -m\n{text}\nwait"],
        cwd=tmp_path,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[")]
    assert lines == shown, done.stdout
