"""What the tidy checks share: which files there are, C++ text without comments, and reporting."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
BUILD = pathlib.Path(os.environ.get("SHARDBUS_BUILD_DIR") or ROOT / "build" / "release")

CPP_SUFFIXES = (".cpp", ".hpp", ".h", ".c")

_TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/",
    re.DOTALL,
)


def project_files(*suffixes):
    """Lists files that are, or could be, committed; with `suffixes` only such files."""
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    else:  # A source archive without git.
        paths = (path for path in ROOT.rglob("*") if "build" not in path.relative_to(ROOT).parts)
    wanted = (path for path in paths if path.is_file() and not path.is_symlink())
    return sorted(path for path in wanted if not suffixes or path.suffix in suffixes)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blank_out(text, keep_strings=False):
    """Replaces comments and literals by blanks, so that lines and columns keep their places."""

    def blank(match):
        token = match.group(0)
        if keep_strings and not token.startswith("/"):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def finish(problems, advice):
    """Prints the problems and what to do about them; exits 1 if there are any."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"\n{len(problems)} problem(s). {advice}")
    sys.exit(1 if problems else 0)
