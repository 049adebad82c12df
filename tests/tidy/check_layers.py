"""Fails on an include, or a word in a core, that tests/tidy/layers.txt does not allow."""

import re

from common import CPP_SUFFIXES, ROOT, blank_out, finish, name_of, project_files

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def read_table():
    """Reads layers.txt into {section: {left: right}}; the last ' = ' of a line separates."""
    table, section = {}, None
    for line in (ROOT / "tests/tidy/layers.txt").read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = table.setdefault(line.strip("[]"), {})
            continue
        left, _, right = (line + " ").rpartition(" = ")
        section[left.strip()] = right.strip()
    return table


def folder_of(parts):
    """Names the layer folder of a path below lib/ (or of an include): base, core/region, ..."""
    return "/".join(parts[:2]) if parts[0] == "core" else parts[0]


def owner_of(path):
    """Names the layer folder that a file of the project is in; None if it is in no layer."""
    parts = path.relative_to(ROOT).parts
    if parts[0] in ("include", "bin", "examples"):
        return parts[0]
    if parts[0] == "lib" and len(parts) > 2:
        return folder_of(parts[1:])
    return None


def rule_key(folder):
    return "core/*" if folder.startswith("core/") else folder


def allowed(table, owner, target):
    if owner == target:
        return True
    may = table["layers"][rule_key(owner)].split()
    return target in may or (target.startswith("core/") and "core/*" in may)


def target_of(table, owner, path, header, quoted):
    """Names the folder that an include points into: a layer, "" for the outside, None if lost."""
    parts = header.split("/")
    if parts[0] == "shardbus":
        return "include"
    if len(parts) > 1 and rule_key(folder_of(parts)) in table["layers"]:
        if (ROOT / "lib" / header).exists() or owner not in ("bin", "examples"):
            return folder_of(parts)
    if not quoted:
        return ""
    if owner in ("bin", "examples"):
        near = [path.parent / header, ROOT / owner / header]
        return owner if any(place.exists() for place in near) else None
    return None


def check_include(table, owner, path, header, quoted):
    for start, folders in table["third_party"].items():
        if header.startswith(start) and owner not in folders.split():
            return f"<{header}> is for {folders} only; go through its interface"
    target = target_of(table, owner, path, header, quoted)
    if target is None:
        return (f'"{header}" is not found; write the path from lib/ ("base/hash.hpp") or '
                '"shardbus/..."')
    if target and not allowed(table, owner, target):
        may = table["layers"][rule_key(owner)] or "nothing of ours"
        return f"{owner} may not include {header}: it may include {may}"
    return None


def check_file(table, path):
    owner = owner_of(path)
    if owner is None:
        return
    if rule_key(owner) not in table["layers"]:
        yield f"{name_of(path)}: folder {owner} is not in tests/tidy/layers.txt; add its row"
        return
    text = blank_out(path.read_text(), keep_strings=True)
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        message = check_include(table, owner, path, match.group(2), match.group(1) == '"')
        if message:
            yield f"{name_of(path)}:{line}: {message}"
    if owner.startswith("core/"):
        yield from check_purity(table["core_forbidden"], path, blank_out(path.read_text()))


def check_purity(forbidden, path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in forbidden.items():
            found = re.search(pattern, line)
            if found:
                yield f"{name_of(path)}:{number}: a core may not use {found.group(0)}: {instead}"


def main():
    table = read_table()
    problems = []
    for path in project_files(*CPP_SUFFIXES):
        problems.extend(check_file(table, path))
    finish(problems, "Layers: DESIGN section 4; the table is tests/tidy/layers.txt.")


if __name__ == "__main__":
    main()
