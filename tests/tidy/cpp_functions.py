"""Finds function bodies in C++ text by matching braces: no parser, but blind to no style we use."""

import re
from typing import NamedTuple

from common import blank_out

_TYPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
_LABEL = re.compile(r"\b(public|private|protected)\s*:(?!:)")
_INIT_LIST = re.compile(r"(\)|\bnoexcept)\s*:(?!:)")
_NAME = re.compile(r"(operator\s*(?:\(\)|[^(]*)|[\w:~]+)\s*\(")


class Function(NamedTuple):
    name: str
    first_line: int
    last_line: int

    @property
    def lines(self):
        return self.last_line - self.first_line + 1


def _without_templates(text):
    """Removes template<...> heads, whose `class T` would look like a class."""
    while True:
        head = re.search(r"\btemplate\s*<", text)
        if not head:
            return text
        depth, end = 1, head.end()
        while end < len(text) and depth:
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        text = text[: head.start()] + text[end:]


def _kind(head):
    """Says what an opening brace after `head` begins: a function, a type, an initialiser."""
    head = _without_templates(_LABEL.sub("", head)).strip()
    before_parameters = head.split("(", 1)[0]
    if _INIT_LIST.search(head) and re.search(r"[\w>]$", head):
        return "member_init"
    if _TYPE.search(before_parameters) or head.endswith('"'):
        return "scope"
    if head.endswith(("=", ",", "(", "return")) or (head and ")" not in head):
        return "initialiser"
    return "function"


def _strip_preprocessor(text):
    """Blanks preprocessor lines with their continuations; an #if with braces would confuse."""
    pattern = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def _describe(head):
    name = _NAME.search(_without_templates(head))
    return name.group(1).strip() if name else "function"


def functions(text):
    """Yields each outermost function body; lambdas and local classes count into theirs."""
    text = _strip_preprocessor(blank_out(text))
    stack, head_start, inside = [], 0, 0
    for place, char in enumerate(text):
        if char == "{":
            head = text[head_start:place]
            kind = "block" if inside else _kind(head)
            stack.append((kind, head_start, head))
            inside += kind in ("function", "block")
            if kind != "member_init":
                head_start = place + 1
        elif char == "}" and stack:
            kind, start, head = stack.pop()
            inside -= kind in ("function", "block")
            if kind == "function":
                skipped = max((label.end() for label in _LABEL.finditer(head)), default=0)
                head = head[skipped:]
                start += skipped + len(head) - len(head.lstrip())
                yield Function(_describe(head), text.count("\n", 0, start) + 1,
                               text.count("\n", 0, place) + 1)
            if kind != "member_init":
                head_start = place + 1
        elif char == ";" and not (stack and stack[-1][0] == "member_init"):
            head_start = place + 1
