"""Writes shardbus/error_table.py from the registry of errors; --check only compares.

Run it in the source tree after include/shardbus/errors.def has changed.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
REGISTRY = HERE.parents[1] / "include/shardbus/errors.def"
TABLE = HERE / "shardbus/error_table.py"
ROW = re.compile(r'^SHARDBUS_ERROR\((\d+), (\w+), (\w+), (true|false), "(.*)"\)$', re.M)

HEAD = '''"""One exception class per error of the protocol.

Written by generate_errors.py; do not edit.
"""

from .errors import ShardbusError
'''

CLASS = '''

class {camel}(ShardbusError{also}):
    """{sentence}"""

    code = {code}
    name = "{name}"
    retry = "{retry}"
    may_have_happened = {happened}
'''


def generate():
    classes = []
    text = HEAD
    for code, name, retry, happened, sentence in ROW.findall(REGISTRY.read_text()):
        camel = "".join(word.capitalize() for word in name.split("_"))
        classes.append(camel)
        # Code that catches Python's own TimeoutError should see ours as well.
        also = ", TimeoutError" if name == "timeout" else ""
        about = sentence[0].upper() + sentence[1:] + "."
        text += CLASS.format(camel=camel, also=also, sentence=about, code=code, name=name,
                             retry=retry, happened=happened == "true")
    listed = "".join(f"    {camel},\n" for camel in classes)
    return f"{text}\n\nALL = (\n{listed})\n"


def main():
    if "--check" in sys.argv[1:]:
        return 0 if TABLE.read_text() == generate() else "error_table.py is stale: run me"
    TABLE.write_text(generate())
    return 0


if __name__ == "__main__":
    sys.exit(main())
