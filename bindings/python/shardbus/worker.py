"""Running entities for a cluster: classes marked with `@host`, run by a Worker.

Recipe and rules: PROTOCOL.md section 10.3.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import inspect
import logging
import signal
import threading
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Union

from . import clock, wire
from .client import Caller, Entity, EntityId, new_sender, unpack
from .error_table import (DecodeFailed, HandlerFailed, InvalidArgument, NoReply, NoSuchMethod,
                          NoSuchType, StaleOwner, TooLarge)
from .errors import Refusal, ShardbusError
from .hashing import shard_of
from .link import Link
from .move import Move
from .session import Handler, Session, Settings

LOG = logging.getLogger("shardbus")

STOP_PATIENCE = 5.0
FINISH_SHARE = 0.6  # of that: for messages that were received and not begun
NOT_BEGUN = object()  # what a task gives that may not begin now
WINDOW = (256, 4 << 20)  # envelopes and bytes that the node may send ahead
RESERVED = frozenset({"save", "load"})


class HostedType(NamedTuple):
    name: str
    shard_count: int


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def host(name: str, shards: int = 256) -> Callable[[type], type]:
    """Marks a class as the entities of type `name`, in `shards` shards (fixed for a cluster).

    The class is made with a Context. Its public methods are the entity's methods. Optional `save()`
    and `load(state)` carry its state through planned moves.
    """

    if not isinstance(shards, int) or not 1 <= shards <= wire.SHARD_COUNT:
        raise ValueError(f"shards={shards!r} of {name!r}: must be 1 to {wire.SHARD_COUNT}")

    def mark(cls: type) -> type:
        cls.__shardbus_type__ = HostedType(name, shards)
        return cls

    return mark


class ReplyPort:
    """Answers one ask, now or later, from any thread. The first answer counts.

    A handler gets one by a parameter with this annotation, and its returned value is then ignored.
    """

    def __init__(self, worker: Worker, address: Optional[list], epoch: int):
        self._worker = worker
        self._address = address
        self._epoch = epoch
        self._open = address is not None

    def __del__(self) -> None:
        if self._open:
            try:
                self.fail(NoReply())
            except ShardbusError:
                pass  # the worker has stopped

    @property
    def valid(self) -> bool:
        """Whether anybody waits for an answer (not for a tell)."""
        return self._open

    @property
    def address(self) -> Optional[list]:
        """The port as a plain value that may be sent to other entities; see Context.port.

        Who takes it takes over the duty to answer.
        """
        self._open = False
        return self._address

    def send(self, value: Any = None) -> None:
        if self._open:
            # Packing may raise, and then the port is still open for that to be told.
            payload = wire.pack(value)
            if len(payload) > wire.PAYLOAD_BYTES:
                return self.fail(TooLarge(
                    f"a reply of {len(payload)} bytes, limit {wire.PAYLOAD_BYTES}"))
            envelope = wire.reply(self._address, payload)
            self._open = False
            self._worker.answer(envelope, self._epoch)

    def fail(self, error: ShardbusError) -> None:
        if self._open:
            self._open = False
            self._worker.answer(wire.error(self._address, error.code, error.text), self._epoch)


class Context:
    """What an entity may know and do: `type`, `id`, `node`, and calls to other entities."""

    def __init__(self, worker: Worker, type_name: str, entity_id: bytes, epoch: int):
        self._worker = worker
        self.epoch = epoch
        self.type = type_name
        self.id_bytes = entity_id
        # Key of the asker's node during a handler, None for a tell.
        self.sender: Optional[int] = None

    @property
    def id(self) -> str:
        """The id as text; `id_bytes` has the bytes of an id that is none."""
        return self.id_bytes.decode("utf-8", "backslashreplace")

    @property
    def node(self) -> str:
        """Name of the node that this worker serves."""
        welcome = self._worker.link.session.welcome
        return welcome.node.name if welcome else ""

    def entity(self, type_name: str, entity_id: EntityId) -> Entity:
        return self._worker.entity(type_name, entity_id)

    def port(self, address: Sequence) -> ReplyPort:
        """Makes a reply port from the address that another entity passed on."""
        return ReplyPort(self._worker, wire.as_correlation(list(address)), self.epoch)


class _Task(NamedTuple):
    """One thing to do for one entity."""

    message: Optional[wire.Message] = None
    size: int = 0
    state: Optional[bytes] = None  # restore this
    move: Optional[Move] = None  # save for this, and end


class _Cell:
    """One entity with its queue. Used on the link's thread; `run` alone runs in the pool."""

    def __init__(self, worker: Worker, cls: type, context: Context):
        self.worker = worker
        self.cls = cls
        self.context = context
        self.queue: collections.deque = collections.deque()
        self.busy = False
        self.task: Optional[_Task] = None  # in the pool
        self.future: Optional[concurrent.futures.Future] = None
        self.withdrawn = False  # the task in the pool shall not begin any more
        self._begun = False
        self._gate = threading.Lock()  # guards these two
        self._entity: Any = None

    def submitted(self, task: _Task) -> None:
        self.task = task
        with self._gate:
            self.withdrawn = self._begun = False

    def begin(self) -> bool:
        with self._gate:
            self._begun = not self.withdrawn
            return self._begun

    def withdraw(self) -> bool:
        """Takes back the task that waits in the pool. False: there is none, or it has begun."""
        if self.task is None or self.task.move is not None:
            return False
        with self._gate:
            if self._begun or self.withdrawn:
                return False
            self.withdrawn = True
        self.future.cancel()
        return True

    def run(self, task: _Task) -> Optional[bytes]:
        """Does one task; gives the saved state if that was asked for."""
        if task.message is not None:
            self._handle(task.message)
        elif task.state is not None:
            self._restore(task.state)
        elif self._entity is not None and hasattr(self._entity, "save"):
            return self._saved(wire.pack(_finished(self._entity.save())))
        return None

    def _saved(self, state: bytes) -> Optional[bytes]:
        if len(state) <= wire.PAYLOAD_BYTES:
            return state
        LOG.error("%s %r: its state of %d bytes is lost in the move, limit %d", self.context.type,
                  self.context.id, len(state), wire.PAYLOAD_BYTES)
        return None

    def _made(self) -> Any:
        if self._entity is None:
            self._entity = self.cls(self.context)
        return self._entity

    def _restore(self, state: bytes) -> None:
        entity = self._made()
        if hasattr(entity, "load"):
            _finished(entity.load(unpack(state)))

    def _handle(self, message: wire.Message) -> None:
        address = message.correlation if message.kind == wire.Kind.ASK else None
        port = ReplyPort(self.worker, address, self.context.epoch)
        self.context.sender = address[0] if isinstance(address, list) else None
        try:
            later, result = self._call(message, port)
            if not later:
                port.send(result)
        except Refusal as refusal:
            port.fail(refusal.error)
        except Exception as error:
            LOG.exception("%s %r %s failed", message.type, message.id, message.method)
            port.fail(HandlerFailed(f"{type(error).__name__}: {error}"))

    def _call(self, message: wire.Message, port: ReplyPort) -> tuple:
        method = self._method(message.method)
        try:
            positional, named = _arguments(unpack(message.payload))
        except DecodeFailed as error:
            raise Refusal(error) from None
        port_name = _port_parameter(method)
        if port_name:
            named[port_name] = port
        try:
            inspect.signature(method).bind(*positional, **named)
        except TypeError as error:
            raise Refusal(DecodeFailed(f"{message.method}: {error}")) from None
        return bool(port_name), _finished(method(*positional, **named))

    def _method(self, name: str) -> Callable:
        known = getattr(self.cls, name, None) if name.isidentifier() else None
        if name.startswith("_") or name in RESERVED or not callable(known):
            raise Refusal(NoSuchMethod(name))
        return getattr(self._made(), name)


def _arguments(value: Any) -> tuple:
    """A map gives keyword arguments, nil none, everything else the one argument."""
    if value is None:
        return [], {}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return [], dict(value)
    return [value], {}


def _port_parameter(method: Callable) -> Optional[str]:
    for name, parameter in inspect.signature(method).parameters.items():
        # Annotations are strings where the module postpones their evaluation.
        if parameter.annotation in (ReplyPort, "ReplyPort", "shardbus.ReplyPort"):
            return name
    return None


def _finished(result: Any) -> Any:
    """Waits for what a handler returned if that is a coroutine."""
    return asyncio.run(result) if inspect.iscoroutine(result) else result


class Worker(Caller, Handler):
    """Runs the given classes for one node at a time, at first for a random one of `addresses`.

    `threads` handlers run side by side, never two of one entity. A handler may block and may ask
    other entities; a coroutine handler occupies one of the threads too.
    """

    def __init__(self, addresses: Union[str, Sequence[str]], classes: Iterable[type], *,
                 threads: int = 4, cluster: str = "", name: str = "", window: tuple = WINDOW):
        self._classes = {}
        for cls in classes:
            hosted = getattr(cls, "__shardbus_type__", None)
            if hosted is None:
                raise InvalidArgument(f"{cls.__name__} is not marked with @shardbus.host")
            self._classes[hosted.name] = (cls, hosted)
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        types = tuple(hosted for _, hosted in self._classes.values())
        sender = new_sender()
        # Workers with the same list would otherwise all go to its first node.
        settings = Settings("worker", sender, name, cluster, types, window,
                            addresses=tuple(listed), first=sender)
        Caller.__init__(self, Link(Session(settings, self)))
        self._window = window
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, "shardbus-entity")
        # The rest belongs to the link's thread.
        self._cells: dict = {}
        self._epoch = 0  # number of the session; what an older one started is not sent any more
        self._busy = 0
        self._done = [0, 0]
        self._granted = [0, 0]
        self._active: set = set()  # cells with a task in the pool, or one that may not begin
        self._stalled: list = []  # those of them that wait for the lease
        self._parted: Optional[threading.Event] = None  # to set when all is done and given back
        self._given_back = False

    # --- from any thread ---

    def start(self, timeout: float = 5.0) -> Worker:
        """Starts in the background; returns once the node has said welcome."""
        self.link.start()
        try:
            self.link.wait_welcome(timeout)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, timeout: float = STOP_PATIENCE) -> None:
        """Finishes what was received, hands the entities back to the node and ends.

        In the last part of `timeout` nothing begins any more: what still waits goes back unbegun.
        An entity whose handler is not done then loses its state.
        """
        if self.link.runs():
            parted = threading.Event()
            self.link.call(lambda: self._part(parted))
            if not parted.wait(timeout * FINISH_SHARE):
                self.link.call(self._return_unbegun)
                if not parted.wait(timeout * (1 - FINISH_SHARE)):
                    self.link.call(self._name_running)
            self.link.stop()
        self._pool.shutdown(wait=False)

    def run(self, timeout: float = 5.0) -> None:
        """Runs until Ctrl-C or SIGTERM. Only the main thread hears of these."""
        hears = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, _interrupt) if hears else None
        try:
            self.start(timeout)
            LOG.info("serving %s", ", ".join(self._classes))
            while not self.link.wait_over(1.0):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()
            if hears:
                signal.signal(signal.SIGTERM, before)

    async def serve(self, timeout: float = 5.0) -> None:
        """`run` for asyncio; cancel it to stop."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.start, timeout)
        try:
            await asyncio.Event().wait()
        finally:
            await loop.run_in_executor(None, self.stop)

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answer(self, envelope: bytes, epoch: int) -> None:
        """Sends a reply or error of the session `epoch`."""
        self.link.call(lambda: epoch == self._epoch
                       and self.link.session.answer(envelope, clock.now()))

    def command(self, envelope: bytes, epoch: int) -> None:
        if epoch == self._epoch:
            # Behind the answers of the messages that were handled before.
            self.link.call(lambda: epoch == self._epoch
                           and self.link.session.answer_free(envelope, clock.now()))

    # --- Handler: the link's thread ---

    def session_opened(self) -> None:
        self._epoch += 1
        self._done = [0, 0]
        self._granted = [0, 0]

    def session_lost(self) -> None:
        self._epoch += 1
        self._cells.clear()  # what runs still ends, but its answers go nowhere
        self._run_stalled()
        self.given_back()

    def lease_renewed(self) -> None:
        self._run_stalled()

    def given_back(self) -> None:
        if self._parted is not None:
            self._given_back = True
            self._check_parted()

    def received(self, envelope: wire.Envelope) -> None:
        value = envelope.value
        if isinstance(value, wire.Message):
            self._take_message(value, envelope.size)
        elif isinstance(value, wire.Reply):
            self._finished(envelope.size)
        elif isinstance(value, wire.Restore):
            cell = self._cell(value.type, value.id)
            if cell is not None:
                self._enqueue(cell, _Task(state=value.state))
        elif isinstance(value, wire.Release):
            self._take_release(value)

    # --- the link's thread ---

    def _take_message(self, message: wire.Message, size: int) -> None:
        cell = self._cell(message.type, message.id)
        if cell is not None:
            self._enqueue(cell, _Task(message=message, size=size))
            return
        if message.kind == wire.Kind.ASK:
            self.answer(wire.error(message.correlation, NoSuchType.code, message.type), self._epoch)
        self._finished(size)

    def _take_release(self, release: wire.Release) -> None:
        cells = [(key, cell) for key, cell in self._cells.items()
                 if key[0] == release.type
                 and shard_of(key[1], release.shard_count) == release.shard]
        move = Move(self, release, self._epoch, len(cells))
        for key, cell in cells:
            if self._parted is None:  # else perhaps nobody else can do it
                self._give_back_unbegun(cell, move)
            self._enqueue(cell, _Task(move=move))
            # A later message for the shard belongs to a new life.
            del self._cells[key]

    def _give_back_unbegun(self, cell: _Cell, move: Move) -> None:
        """The shard must not wait for a queue: what has not begun is handled where it goes."""
        unbegun = self._take_unbegun(cell)
        kept = max((n for n, task in enumerate(unbegun, 1) if task.size >= wire.PAYLOAD_BYTES),
                   default=0)  # what fits no RELEASED, and all before it
        cell.queue.extend(unbegun[:kept])
        self._busy += kept
        for task in unbegun[kept:]:
            self._return(task, move)
            self._finished(task.size)

    def _cell(self, type_name: str, entity_id: bytes) -> Optional[_Cell]:
        key = (type_name, entity_id)
        if key not in self._cells:
            if type_name not in self._classes:
                return None
            context = Context(self, type_name, entity_id, self._epoch)
            self._cells[key] = _Cell(self, self._classes[type_name][0], context)
        return self._cells[key]

    def _enqueue(self, cell: _Cell, task: _Task) -> None:
        cell.queue.append(task)
        self._busy += 1
        if not cell.busy:
            self._run_next(cell)

    def _run_next(self, cell: _Cell) -> None:
        if cell.context.epoch != self._epoch:
            # The session that it came with is over, so its shard is somebody else's by now.
            self._busy -= len(cell.queue)
            cell.queue.clear()
        cell.busy = bool(cell.queue)
        if not cell.busy:
            self._active.discard(cell)
            return
        task = cell.queue.popleft()
        cell.submitted(task)
        try:
            cell.future = self._pool.submit(self._begin, cell, task)
        except RuntimeError:
            return  # stopped
        self._active.add(cell)
        cell.future.add_done_callback(
            lambda done: self.link.call(lambda: self._after(cell, task, done)))

    def _begin(self, cell: _Cell, task: _Task) -> Any:
        """Runs in the pool, where the task may have waited."""
        if cell.context.epoch != self._epoch:
            return NOT_BEGUN
        if task.move is None and not self.link.session.leased(clock.now()):
            return NOT_BEGUN
        return cell.run(task) if cell.begin() else NOT_BEGUN

    def _put_back(self, cell: _Cell, task: _Task) -> None:
        cell.queue.appendleft(task)
        if cell.context.epoch == self._epoch and not self.link.session.leased(clock.now()):
            self._stalled.append(cell)
        else:
            self._run_next(cell)
            self._check_parted()

    def _run_stalled(self) -> None:
        stalled, self._stalled = self._stalled, []
        for cell in stalled:
            self._run_next(cell)
        self._check_parted()

    def _after(self, cell: _Cell, task: _Task, done: concurrent.futures.Future) -> None:
        cell.task = cell.future = None
        not_begun = cell.withdrawn or done.exception() is None and done.result() is NOT_BEGUN
        if not_begun and not cell.withdrawn:
            self._put_back(cell, task)
            return
        self._busy -= 1
        state = None
        if not_begun:
            pass  # it went back
        elif done.exception() is None:
            state = done.result()
        else:
            what = "save failed, its state is lost in the move" if task.move else "load failed"
            LOG.error("%s %r: %s: %r", cell.context.type, cell.context.id, what, done.exception(),
                      exc_info=done.exception())
        if task.move is not None:
            task.move.saved(cell.context.id_bytes, state)
        if task.message is not None and not not_begun and cell.context.epoch == self._epoch:
            self._finished(task.size)
        self._run_next(cell)
        self._check_parted()

    def _finished(self, size: int) -> None:
        self._done[0] += 1
        self._done[1] += size
        used = [done - granted for done, granted in zip(self._done, self._granted)]
        if any(part >= max(1, whole // 4) for part, whole in zip(used, self._window)):
            self._granted = list(self._done)
            self.link.session.grant(self._done[0] + self._window[0],
                                    self._done[1] + self._window[1])

    # --- the end; the link's thread ---

    def _part(self, parted: threading.Event) -> None:
        self._parted = parted
        if not self.link.session.give_back():
            self._given_back = True
        self._check_parted()

    def _check_parted(self) -> None:
        if self._parted is not None and self._given_back and self._busy == 0:
            self._parted.set()

    def _return_unbegun(self) -> None:
        """Leaves of every queue only what saves the entity."""
        for cell in list(self._active):
            move = next((task.move for task in cell.queue if task.move is not None), None)
            for task in self._take_unbegun(cell):
                self._return(task, move)
        self._run_stalled()

    def _take_unbegun(self, cell: _Cell) -> list:
        """Takes out of an entity's queue the messages that have not begun, in order."""
        waiting = list(cell.queue)
        if cell.withdraw():
            waiting.insert(0, cell.task)
            self._busy += 1  # taken off once here, once where the pool gives it back
        unbegun = [task for task in waiting if task.message is not None]
        cell.queue = collections.deque(task for task in waiting if task.message is None)
        self._busy -= len(unbegun)
        return unbegun

    def _return(self, task: _Task, move: Optional[Move]) -> None:
        message = task.message
        if move is not None and task.size < wire.PAYLOAD_BYTES:
            move.give_back([wire.again(message)])
        elif message.kind == wire.Kind.ASK:
            why = StaleOwner("the worker stops")
            self.answer(wire.error(message.correlation, why.code, why.text), self._epoch)
        else:
            LOG.warning("the worker stops: a tell for %s %r is dropped", message.type, message.id)

    def _name_running(self) -> None:
        running = [f"{cell.context.type} {cell.context.id!r}" for cell in self._active]
        LOG.warning("the worker stops before it has given everything back; handlers run in: %s",
                    ", ".join(running) or "none")
