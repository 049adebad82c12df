"""Checks addresses of nodes before anything is opened, with the texts of the C++ library."""

from __future__ import annotations

from typing import Sequence

from .error_table import BadAddress


def check(addresses: Sequence[str]) -> None:
    """Raises BadAddress for the first one that no node can have, or if there is none."""
    if not addresses:
        raise BadAddress("no address of a node is given; write tcp://HOST:PORT")
    for address in addresses:
        wrong = _what_is_wrong(address)
        if wrong:
            raise BadAddress(f"{address!r}: {wrong}; write tcp://HOST:PORT, for example "
                             "tcp://127.0.0.1:7400")


def _what_is_wrong(address: object) -> str:
    if not isinstance(address, str):
        return "is no text"
    if not address.startswith("tcp://"):
        return "does not start with tcp://"
    host, colon, port = address[len("tcp://"):].rpartition(":")
    if not colon or not host:
        return "has no host or no port"
    if not host.strip("[]") or any(c in host.strip("[]") for c in "/[] "):
        return "has a host that cannot be one"
    if not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= 65535:
        return "has a port that is not a number from 1 to 65535"
    return ""
