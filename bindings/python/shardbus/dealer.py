"""The socket of one session."""

from __future__ import annotations

import collections
from typing import Optional

import zmq
from zmq.utils.monitor import recv_monitor_message

from . import clock
from .session import Session

MAX_MESSAGE_BYTES = 2 << 20
DRAIN_MESSAGES = 1000  # at a time, so that sending and timers have their turn
LINGER_MS = 1000
# A connection ended, or an attempt to make one failed.
BROKEN = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED


class Dealer:
    """Carries frames between a session and the node at one of its addresses.

    It makes a new socket, to the next address, whenever the session wants one. Threads: its own.
    """

    def __init__(self, context: zmq.Context, poller: zmq.Poller, session: Session):
        self.session = session
        self._context = context
        self._poller = poller
        self._next_address = session.settings.first
        self._frames: collections.deque = collections.deque()
        self._socket: Optional[zmq.Socket] = None
        self._monitor: Optional[zmq.Socket] = None

    @property
    def blocked(self) -> bool:
        """Frames are left that the socket did not take."""
        return bool(self._frames)

    def receive(self, ready: dict) -> None:
        broken = self._monitor in ready and self._take_events()
        if self._socket in ready or broken:
            self._drain()
        if broken:
            self.session.disconnected(clock.now())

    def send(self) -> None:
        self._frames.extend(self.session.take_frames())
        while self._frames and self._socket is not None:
            try:
                self._socket.send(self._frames[0], zmq.DONTWAIT)
            except zmq.Again:
                return
            self._frames.popleft()

    def rebuild_if_due(self, now: float) -> None:
        if self.session.rebuild_at is None or now < self.session.rebuild_at:
            return
        self.close(0)
        self._frames.clear()
        addresses = self.session.settings.addresses
        address = addresses[self._next_address % len(addresses)]
        self._next_address += 1
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._monitor = self._socket.get_monitor_socket(BROKEN)
        self._socket.connect(address)
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        self.session.connected(now, address)

    def close(self, linger_ms: int = LINGER_MS) -> None:
        if self._socket is not None:
            self._poller.unregister(self._socket)
            self._poller.unregister(self._monitor)
            self._socket.disable_monitor()
            # Not left to the collector: the traceback of an ask's error may hold it for long, and
            # a context with an open socket does not end.
            self._monitor.close()
            self._socket.close(linger=linger_ms)
            self._socket = self._monitor = None

    def _drain(self) -> None:
        for _ in range(DRAIN_MESSAGES):
            try:
                parts = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            self.session.receive(parts, clock.now())

    def _take_events(self) -> bool:
        """Reads what happened to the connection; whether it broke or was refused.

        libzmq reconnects by itself, which would hide that a session is over; without this, only
        silence would show it, many seconds later.
        """
        broken = False
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)["event"]
            broken = broken or event & BROKEN != 0
        return broken
