"""What a worker gives back of one shard: states, and messages that have not begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import wire

if TYPE_CHECKING:
    from .worker import Worker


class Move:
    """Hands the states of one shard to the node, each as soon as its entity has come to rest.

    One that never does cannot hold back the others: the node waits for the rest, but not for ever.
    """

    def __init__(self, worker: Worker, release: wire.Release, epoch: int, count: int):
        self._worker = worker
        self._release = release
        self._epoch = epoch
        self._left = count
        self._part: list = []
        self._size = 0
        self._flush_due = False
        if count == 0:
            self._send(more=False)

    def saved(self, entity_id: bytes, state: Optional[bytes]) -> None:
        self._left -= 1
        if state is not None:
            self._append(entity_id, state)
        if self._left == 0:
            self._send(more=False)
        elif self._part and not self._flush_due:
            self._flush_due = True
            self._worker.link.call(self._flush)  # together with what else is ready by now

    def give_back(self, messages: list) -> None:
        """Returns messages of an entity that is not saved yet; nothing of them has been done."""
        body = (self._release.type, self._release.shard, [], True, messages)
        self._worker.command(wire.envelope(wire.Kind.RELEASED, *body), self._epoch)

    def _append(self, entity_id: bytes, state: bytes) -> None:
        added = len(entity_id) + len(state) + 16
        if self._part and self._size + added > wire.PAYLOAD_BYTES:
            self._send(more=True)
        self._part.append([entity_id, state])
        self._size += added

    def _flush(self) -> None:
        self._flush_due = False
        if self._left and self._part:
            self._send(more=True)

    def _send(self, more: bool) -> None:
        body = (self._release.type, self._release.shard, self._part, more)
        self._worker.command(wire.envelope(wire.Kind.RELEASED, *body), self._epoch)
        self._part, self._size = [], 0
