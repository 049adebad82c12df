"""Call and host entities of a shardbus cluster. Start with `connect` and `host`; see README.md."""

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
