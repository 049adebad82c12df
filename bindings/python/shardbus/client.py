"""Calling entities: `connect` for threads, `connect_async` for asyncio."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import Future
from typing import Any, Optional, Sequence, Union

import msgpack

from . import clock, wire
from .error_table import DecodeFailed, InvalidArgument, Overloaded, TooLarge, WouldDeadlock
from .errors import ShardbusError
from .link import Link
from .owners import Owners
from .session import Call, Session, Settings

EntityId = Union[str, bytes]
DEFAULT_TIMEOUT = 5.0


def unpack(payload: bytes) -> Any:
    """Gives the value of a payload; an empty one is None. Raises DecodeFailed."""
    if not payload:
        return None
    try:
        return msgpack.unpackb(payload, raw=False, strict_map_key=False)
    except Exception as error:
        raise DecodeFailed(str(error)) from error


def new_sender() -> int:
    return random.SystemRandom().randint(1, wire.MAX_INTEGER)


def _checked(what: str, text: str, least: int, most: int) -> str:
    size = len(text.encode())
    if size > most:
        raise TooLarge(f"{what} of {size} bytes, limit {most}")
    if size < least:
        raise InvalidArgument(f"{what} is empty")
    return text


def make_call(type_name: str, entity_id: bytes, method: str, value: Any,
              operation: Optional[EntityId], **rest: Any) -> Call:
    headers = None if operation is None else {"op": operation}
    payload = wire.pack(value)
    if len(payload) > wire.PAYLOAD_BYTES:
        raise TooLarge(f"payload of {len(payload)} bytes, limit {wire.PAYLOAD_BYTES}")
    return Call(type_name, entity_id, _checked("method", method, 0, wire.METHOD_BYTES),
                payload, headers=headers, **rest)


class Caller:
    """Sends calls over a link; shared by clients and by the entities of a worker."""

    def __init__(self, link: Link):
        self.link = link

    def entity(self, type_name: str, entity_id: EntityId) -> Entity:
        """Gives the address of an entity; nothing is sent."""
        return Entity(self, *self._address(type_name, entity_id))

    @staticmethod
    def _address(type_name: str, entity_id: EntityId) -> tuple:
        raw = entity_id.encode() if isinstance(entity_id, str) else bytes(entity_id)
        if len(raw) > wire.ID_BYTES:
            raise TooLarge(f"id of {len(raw)} bytes, limit {wire.ID_BYTES}")
        return _checked("type", type_name, 1, wire.TYPE_BYTES), raw

    def submit(self, call: Call) -> None:
        session = self.link.session
        # An early answer for the caller's sake; the session itself checks again.
        if session.waiting >= session.settings.max_waiting:
            raise Overloaded(f"{session.waiting} messages wait for the node already")

        def run() -> None:
            try:
                session.call(call, clock.now())
            except ShardbusError as error:
                if call.done is None:
                    session.counters["tells_refused"] += 1
                else:
                    call.done(None, error)

        self.link.call(run)

    def ask_future(self, address: tuple, method: str, value: Any, timeout: Optional[float],
                   operation: Optional[EntityId]) -> Future:
        result: Future = Future()

        def done(payload: Optional[bytes], error: Optional[ShardbusError]) -> None:
            if not result.set_running_or_notify_cancel():
                return
            try:
                if error is not None:
                    raise error
                result.set_result(unpack(payload))
            except ShardbusError as failure:
                result.set_exception(failure)

        deadline = None if timeout is None else clock.now() + timeout
        self.submit(make_call(*address, method, value, operation, deadline=deadline, done=done))
        return result

    def tell(self, address: tuple, method: str, value: Any,
             operation: Optional[EntityId]) -> None:
        self.submit(make_call(*address, method, value, operation))


class Entity:
    """The address of one entity. Threads: safe from any."""

    def __init__(self, caller: Caller, type_name: str, entity_id: bytes):
        self._caller = caller
        self.type = type_name
        self.id = entity_id

    def __repr__(self) -> str:
        return f"Entity({self.type!r}, {self.id!r})"

    def ask(self, method: str, payload: Any = None, timeout: Optional[float] = DEFAULT_TIMEOUT,
            operation: Optional[EntityId] = None) -> Any:
        """Calls `method` and waits for its reply. Raises a ShardbusError.

        `operation` is an id of this one effect: a repeat of the call with it does nothing twice.
        """
        if threading.current_thread() is self._caller.link:
            raise WouldDeadlock("use ask_future in callbacks")
        return self.ask_future(method, payload, timeout, operation).result()

    def ask_future(self, method: str, payload: Any = None,
                   timeout: Optional[float] = DEFAULT_TIMEOUT,
                   operation: Optional[EntityId] = None) -> Future:
        """Like `ask`, but gives a concurrent.futures.Future at once."""
        return self._caller.ask_future((self.type, self.id), method, payload, timeout, operation)

    def tell(self, method: str, payload: Any = None,
             operation: Optional[EntityId] = None) -> None:
        """Sends a message without an answer. Raises Overloaded when too many wait to be sent."""
        self._caller.tell((self.type, self.id), method, payload, operation)


class AsyncEntity(Entity):
    """The same for asyncio: `await entity.ask(...)`."""

    async def ask(self, method: str, payload: Any = None,
                  timeout: Optional[float] = DEFAULT_TIMEOUT,
                  operation: Optional[EntityId] = None) -> Any:
        return await asyncio.wrap_future(self.ask_future(method, payload, timeout, operation))


ROUTES = {"any": Session, "owners": Owners}


class Client(Caller):
    """A connection to a cluster; it reconnects by itself.

    `route` is "any" (one node at a time, which forwards) or "owners" (straight to the node that
    runs the entity). Threads: safe from any. Use it as a context manager, or call `close`.
    """

    def __init__(self, addresses: Union[str, Sequence[str]], cluster: str = "", name: str = "",
                 max_waiting: int = 4096, route: str = "any"):
        if route not in ROUTES:
            raise InvalidArgument(f"route {route!r} is none of {', '.join(ROUTES)}")
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        settings = Settings("client", new_sender(), name, cluster, max_waiting=max_waiting,
                            addresses=tuple(listed))
        super().__init__(Link(ROUTES[route](settings)))
        self.link.start()

    def close(self) -> None:
        """Sends what was handed over, says goodbye, and ends every open ask."""
        self.link.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Client):
    """The same for asyncio. A thread owns the socket, so that a cancelled await loses nothing."""

    def entity(self, type_name: str, entity_id: EntityId) -> AsyncEntity:
        return AsyncEntity(self, *self._address(type_name, entity_id))

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def connect(addresses: Union[str, Sequence[str]] = "tcp://127.0.0.1:7400", *, timeout: float = 5.0,
            cluster: str = "", name: str = "", route: str = "any") -> Client:
    """Connects to a node, the first of `addresses` that answers, and waits for its welcome."""
    client = Client(addresses, cluster, name, route=route)
    try:
        client.link.wait_welcome(timeout)
    except BaseException:
        client.close()
        raise
    return client


async def connect_async(addresses: Union[str, Sequence[str]] = "tcp://127.0.0.1:7400", *,
                        timeout: float = 5.0, cluster: str = "", name: str = "",
                        route: str = "any") -> AsyncClient:
    """`connect` for asyncio."""
    client = AsyncClient(addresses, cluster, name, route=route)
    loop = asyncio.get_running_loop()
    try:
        await loop.run_in_executor(None, client.link.wait_welcome, timeout)
    except BaseException:
        await client.aclose()
        raise
    return client
