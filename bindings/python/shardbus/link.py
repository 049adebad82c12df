"""The thread that owns a socket and drives a Session with it."""

from __future__ import annotations

import collections
import logging
import socket
import threading
import time
from typing import Callable, Optional, Sequence

import zmq
from zmq.utils.monitor import recv_monitor_message

from .error_table import Stopped, Unreachable
from .session import Session

LOG = logging.getLogger("shardbus")

MAX_MESSAGE_BYTES = 2 << 20
DRAIN_MESSAGES = 1000  # at a time, so that sending and timers have their turn
LINGER_MS = 1000
IDLE_WAIT = 60.0
# A connection ended, or an attempt to make one failed.
BROKEN = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED


class Link(threading.Thread):
    """Runs one session against a list of addresses, one of them at a time.

    Threads: `call` and `stop` may be used from any; everything else belongs to this thread.
    """

    def __init__(self, addresses: Sequence[str], session: Session):
        super().__init__(name="shardbus-link", daemon=True)
        self.session = session
        self._settled = threading.Event()
        self._opened = self._closed = False
        self._addresses = list(addresses)
        self._next_address = 0
        self._calls: collections.deque = collections.deque()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._awake = threading.Event()
        self._stopping = False
        self._frames: collections.deque = collections.deque()
        self._context = zmq.Context()  # of our own: a shared one could be terminated by others
        self._poller = zmq.Poller()
        self._socket: Optional[zmq.Socket] = None
        self._monitor: Optional[zmq.Socket] = None

    # --- from any thread ---

    def call(self, function: Callable[[], None]) -> None:
        """Runs `function` on this thread, after what was handed over before."""
        if not self.is_alive() and not self._closed:
            raise Stopped("not started")
        self._calls.append(function)
        if self._closed:
            self._run_calls()  # nobody else does any more; the stopped session refuses it
        if not self._awake.is_set():
            self._awake.set()
            try:
                self._wake_out.send(b"w")
            except OSError:
                pass  # full: it wakes up anyway

    def wait_welcome(self, timeout: float) -> None:
        """Waits for the first session. Raises the node's rejection or Unreachable."""
        self._settled.wait(timeout)
        if not self._opened:
            nobody = f"no node answers at {', '.join(self._addresses)}"
            raise self.session.rejection or Unreachable(nobody)

    def stop(self, timeout: float = 5.0) -> None:
        """Says goodbye and ends the thread. Repeating it does no harm."""
        if self.is_alive() and threading.current_thread() is not self:
            self.call(self._begin_stop)
            self.join(timeout)

    # --- this thread ---

    def run(self) -> None:
        self._poller.register(self._wake_in, zmq.POLLIN)
        try:
            while not self._stopping:
                self._turn()
            self._send()
        finally:
            self.session.stop()
            self._closed = True
            self._run_calls()
            self._close_socket(LINGER_MS)
            self._context.term()
            self._wake_in.close()
            self._wake_out.close()

    def _begin_stop(self) -> None:
        self.session.stop()
        self._stopping = True

    def _turn(self) -> None:
        ready = dict(self._poller.poll(self._wait_ms()))
        if self._wake_in.fileno() in ready:
            self._wake_in.recv(4096)
        self._awake.clear()
        broken = self._monitor in ready and self._take_events()
        if self._socket in ready or broken:
            self._drain()
        self._run_calls()
        now = time.monotonic()
        if broken:
            self.session.disconnected(now)
        self.session.tick(now)
        if self.session.rebuild_at is not None and now >= self.session.rebuild_at:
            self._rebuild(now)
        self._settle()
        self._send()

    def _settle(self) -> None:
        rejection = self.session.rejection
        if self.session.state == "open":
            self._opened = True
            self._settled.set()
        elif rejection is not None and rejection.retry == "no":
            self._settled.set()

    def _wait_ms(self) -> int:
        if self._calls:
            return 0
        deadline = self.session.next_deadline()
        wait = IDLE_WAIT if deadline is None else max(0.0, deadline - time.monotonic())
        if self._frames:
            wait = min(wait, 0.01)  # the socket was full
        return int(min(wait, IDLE_WAIT) * 1000) + (1 if wait > 0 else 0)

    def _drain(self) -> None:
        for _ in range(DRAIN_MESSAGES):
            try:
                parts = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            self.session.receive(parts, time.monotonic())

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

    def _run_calls(self) -> None:
        while self._calls:
            try:
                self._calls.popleft()()
            except IndexError:
                return  # another thread took the last one, after the end
            except Exception:
                LOG.exception("a call on the link failed")

    def _send(self) -> None:
        self._frames.extend(self.session.take_frames())
        while self._frames and self._socket is not None:
            try:
                self._socket.send(self._frames[0], zmq.DONTWAIT)
            except zmq.Again:
                return
            self._frames.popleft()

    def _rebuild(self, now: float) -> None:
        self._close_socket(0)
        self._frames.clear()
        address = self._addresses[self._next_address % len(self._addresses)]
        self._next_address += 1
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._monitor = self._socket.get_monitor_socket(BROKEN)
        self._socket.connect(address)
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        self.session.connected(now)

    def _close_socket(self, linger_ms: int) -> None:
        if self._socket is not None:
            self._poller.unregister(self._socket)
            self._poller.unregister(self._monitor)
            self._socket.disable_monitor()
            self._socket.close(linger=linger_ms)
            self._socket = self._monitor = None
