"""The thread that owns the sockets and drives what speaks over them."""

from __future__ import annotations

import collections
import logging
import socket
import threading
from typing import Callable, Union

import zmq

from . import addresses, clock
from .dealer import Dealer
from .error_table import Stopped, Unreachable
from .owners import Owners
from .session import Session

LOG = logging.getLogger("shardbus")

IDLE_WAIT = 60.0


class Link(threading.Thread):
    """Runs one session, or the sessions of a client that goes to the owners, in one thread.

    Threads: `call` and `stop` may be used from any; everything else belongs to this thread.
    """

    def __init__(self, session: Union[Session, Owners]):
        addresses.check(session.settings.addresses)  # here, where the caller sees it
        super().__init__(name="shardbus-link", daemon=True)
        self.session = session
        self._settled = threading.Event()
        self._opened = self._closed = False
        self._calls: collections.deque = collections.deque()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._awake = threading.Event()
        self._stopping = False
        self._over = threading.Event()  # see `runs`
        self._context = zmq.Context()  # of our own: a shared one could be terminated by others
        self._poller = zmq.Poller()
        self._dealers: dict = {}  # by session

    # --- from any thread ---

    def runs(self) -> bool:
        """Whether it was started and has not ended.

        `is_alive` gives the wrong answer once a signal has interrupted a `join` with a timeout:
        Python then takes the thread for ended.
        """
        return self.ident is not None and not self._over.is_set()

    def wait_over(self, timeout: float) -> bool:
        """Whether it has ended, waiting so many seconds for it. A signal may interrupt it."""
        return self._over.wait(timeout)

    def call(self, function: Callable[[], None]) -> None:
        """Runs `function` on this thread, after what was handed over before."""
        if not self.runs() and not self._closed:
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
            nobody = f"no node answers at {', '.join(self.session.settings.addresses)}"
            raise self.session.rejection or Unreachable(nobody)

    def stop(self, timeout: float = 5.0) -> None:
        """Says goodbye and ends the thread. Repeating it does no harm."""
        if self.runs() and threading.current_thread() is not self:
            self.call(self._begin_stop)
            if self.wait_over(timeout):
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
            try:
                self._run_calls()
                for dealer in self._dealers.values():
                    dealer.close()
                self._context.term()
                self._wake_in.close()
                self._wake_out.close()
            finally:
                self._over.set()

    def _begin_stop(self) -> None:
        self.session.stop()
        self._stopping = True

    def _turn(self) -> None:
        ready = dict(self._poller.poll(self._wait_ms()))
        if self._wake_in.fileno() in ready:
            self._wake_in.recv(4096)
        self._awake.clear()
        for dealer in self._dealers.values():
            dealer.receive(ready)
        self._run_calls()
        now = clock.now()
        self.session.tick(now)
        self._keep_dealers(now)
        self._settle()
        self._send()

    def _keep_dealers(self, now: float) -> None:
        wanted = self.session.sessions
        for session in self._dealers.keys() - set(wanted):
            self._dealers.pop(session).close(0)
        for session in wanted:
            if session not in self._dealers:
                self._dealers[session] = Dealer(self._context, self._poller, session)
            self._dealers[session].rebuild_if_due(now)

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
        wait = IDLE_WAIT if deadline is None else max(0.0, deadline - clock.now())
        if any(dealer.blocked for dealer in self._dealers.values()):
            wait = min(wait, 0.01)  # a socket was full
        return int(min(wait, IDLE_WAIT) * 1000) + (1 if wait > 0 else 0)

    def _run_calls(self) -> None:
        while self._calls:
            try:
                self._calls.popleft()()
            except IndexError:
                return  # another thread took the last one, after the end
            except Exception:
                LOG.exception("a call on the link failed")

    def _send(self) -> None:
        for dealer in self._dealers.values():
            dealer.send()
