"""python3 -m shardbus: ask and tell from a shell, or run a worker."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import sys

from .client import connect
from .errors import ShardbusError
from .worker import Worker

DEFAULT_NODE = "tcp://127.0.0.1:7400"


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m shardbus", description=__doc__)
    parser.add_argument("--connect", action="append", metavar="ADDRESS",
                        help="address of a node; repeat it for more (default: the variable "
                             f"SHARDBUS_NODE, with commas between, else {DEFAULT_NODE})")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("ask", "call a method and print its reply as JSON"),
                        ("tell", "send a message without an answer")):
        command = commands.add_parser(name, help=about)
        command.add_argument("type")
        command.add_argument("id")
        command.add_argument("method")
        command.add_argument("payload", nargs="?", default="null", help="JSON (default null)")
    commands.choices["ask"].add_argument("--timeout", type=float, default=5.0)
    worker = commands.add_parser("worker", help="run entity classes until Ctrl-C or SIGTERM")
    worker.add_argument("classes", nargs="+", metavar="MODULE:CLASS")
    worker.add_argument("--threads", type=int, default=4)
    return parser


def load_class(name: str) -> type:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def printable(value: object) -> str:
    return json.dumps(value, default=lambda raw: raw.hex() if isinstance(raw, bytes) else str(raw))


def run(options: argparse.Namespace) -> None:
    named = [one.strip() for one in os.environ.get("SHARDBUS_NODE", "").split(",") if one.strip()]
    addresses = options.connect or named or [DEFAULT_NODE]
    if options.command == "worker":
        sys.path.insert(0, os.getcwd())
        classes = [load_class(name) for name in options.classes]
        Worker(addresses, classes, threads=options.threads).run()
        return
    with connect(addresses) as bus:
        entity = bus.entity(options.type, options.id)
        payload = json.loads(options.payload)
        if options.command == "ask":
            print(printable(entity.ask(options.method, payload, timeout=options.timeout)))
        else:
            entity.tell(options.method, payload)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        run(arguments().parse_args())
    except ShardbusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (ImportError, AttributeError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
