"""Fails on committed files that name a place of one machine or the host of a package registry.

The names are put together here from pieces, as this file is checked too.
"""

import re

from common import finish, name_of, project_files

FOLDERS = re.compile(r"(?<![\w.}$\])-])/(?:" + "|".join(("work", "root", "home")) + r")/")
REGISTRIES = re.compile("|".join(re.escape(".".join(host)) for host in (
    ("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"),
    ("yarnpkg", "com"), ("crates", "io"), ("golang", "org"), ("maven", "org"),
    ("maven", "apache", "org"), ("deb", "debian", "org"), ("rubygems", "org"),
    ("docker", "io"), ("nuget", "org"))))


def check(path):
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return  # A binary file, such as a fuzz corpus entry.
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in ((FOLDERS, "use a path relative to the project, or a variable"),
                                 (REGISTRIES, "leave the choice of registry to the machine")):
            found = pattern.search(line)
            if found:
                yield f"{name_of(path)}:{number}: mentions {found.group(0)}: {instead}"


def main():
    problems = [problem for path in project_files() for problem in check(path)]
    finish(problems, "What is true on one machine only does not belong into the repository.")


if __name__ == "__main__":
    main()
