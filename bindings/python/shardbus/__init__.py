"""Call and host entities of a shardbus cluster. Start with `connect` and `host`; see README.md."""

try:
    import msgpack as _msgpack  # noqa: F401
    import zmq as _zmq  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"shardbus needs the Python packages pyzmq and msgpack (Debian: python3-zmq, "
        f"python3-msgpack): {missing}", name=missing.name) from None

from .client import AsyncClient, AsyncEntity, Client, Entity, connect, connect_async
from .error_table import *  # noqa: F403  one class per error of the protocol
from .error_table import ALL as _ALL_ERRORS
from .errors import Refusal, ShardbusError, error_from_code
from .hashing import shard_of
from .worker import Context, ReplyPort, Worker, host

__version__ = "0.1.0"

__all__ = [
    "AsyncClient", "AsyncEntity", "Client", "Context", "Entity", "Refusal", "ReplyPort",
    "ShardbusError", "Worker", "connect", "connect_async", "error_from_code", "host", "shard_of",
    *(kind.__name__ for kind in _ALL_ERRORS),
]
