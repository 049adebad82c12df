"""The sessions of a client with several nodes: one per node, and which of them forwards the rest.

Pure like the sessions themselves: the driver gives each of `sessions` a socket.
"""

from __future__ import annotations

import logging
from typing import Optional

from . import wire
from .errors import ShardbusError
from .session import Handler, Session, Settings

LOG = logging.getLogger("shardbus")

RETRY_PAUSE = 1.0  # until a node that could not be reached is tried again, if it is wanted


class WayEvents:
    """What the owner of the ways is told. Only facts: what follows from them is done later."""

    def way_opened(self, way: Way) -> None:
        """Messages may go along it."""

    def way_closed(self, way: Way, unsent: list, was_open: bool) -> None:
        """What went along it is lost, `unsent` apart; or it could not be opened."""

    def all_ways_lost(self) -> None:
        """No session is left: the client begins anew."""

    def way_received(self, way: Way, envelope: wire.Envelope) -> None:
        """News about owners."""


class Way(Handler):
    """The direct way to one node. It is `opening`, open, or down (without a session, or trying)."""

    def __init__(self, ways: Ways, key: Optional[int], addresses: tuple):
        self.key = key  # None: whoever answers first
        self.is_open = False
        self.opening = True  # for the first time: worth waiting for
        self._ways = ways
        self._addresses = addresses
        self._retry_at = 0.0
        self.session: Optional[Session] = None
        self._begin()

    def __repr__(self) -> str:
        return f"Way({self.key}, {self._addresses})"

    @property
    def front(self) -> str:
        return self._addresses[0]

    def retry(self, now: float) -> None:
        if self.session is None and now >= self._retry_at:
            self._begin()

    def drop(self) -> None:
        """Ends without a word."""
        if self.session is not None:
            self.session.handler = Handler()  # nothing that it still says concerns us
        self.session = None
        self.is_open = self.opening = False
        self._ways.list_sessions()

    def _begin(self) -> None:
        self.session = Session(self._ways.settings._replace(addresses=self._addresses), self)
        self._ways.list_sessions()

    # --- from the session ---

    def session_opened(self) -> None:
        node = self.session.welcome.node
        if node.front:
            self._addresses = (node.front,)
        self.is_open, self.opening = True, False
        self._ways.opened(self, node.key)

    def session_lost(self) -> None:
        unsent = self.session.take_back()
        self.drop()
        self._retry_at = 0.0
        self._ways.lost(self, unsent)

    def session_refused(self) -> None:
        if self.key is None:
            self._ways.rejection = self.session.rejection
            return  # it goes on with the next of its addresses
        self._retry_at = self.session.rebuild_at + RETRY_PAUSE
        self.drop()
        self._ways.events.way_closed(self, [], False)

    def received(self, envelope: wire.Envelope) -> None:
        self._ways.events.way_received(self, envelope)


class Ways:
    def __init__(self, settings: Settings, events: WayEvents):
        self.settings = settings
        self.events = events
        self.rejection: Optional[ShardbusError] = None  # of the node that was asked first
        self.sessions: tuple = ()  # replaced as a whole: other threads read it
        self._fronts: dict = {}  # node key -> address
        self._by_key: dict = {}
        self._open: list = []  # the oldest first
        self._first: Optional[Way] = None
        self._begin(settings.addresses)

    @property
    def home(self) -> Optional[Way]:
        """Gives the way for what has no owner that can be reached."""
        return self._open[0] if self._open else None

    def open_to(self, key: Optional[int]) -> Optional[Way]:
        way = self._by_key.get(key)
        return way if way is not None and way.is_open else None

    def to(self, key: int, now: float) -> Optional[Way]:
        """Gives the way straight to a node, and begins it where there is none yet.

        None: the node cannot be reached now. A way that is opening for the first time is given.
        """
        way = self._by_key.get(key)
        if way is None:
            front = self._fronts.get(key)
            # Two sessions with one node would be two ways to it, and it may overtake itself.
            if not front or not self._open or any(w.front == front for w in self._by_key.values()):
                return None
            way = self._by_key[key] = Way(self, key, (front,))
            self.list_sessions()
        if way.is_open or way.opening:
            return way
        way.retry(now)
        return None

    def know(self, fronts: dict) -> None:
        """Takes the nodes of a table."""
        self._fronts = dict(fronts)
        for key, way in list(self._by_key.items()):
            if not way.is_open and key not in fronts:
                self._remove(way)
                self.events.way_closed(way, [], False)

    def know_one(self, key: int, front: str) -> None:
        if front:
            self._fronts[key] = front

    # --- from the ways ---

    def list_sessions(self) -> None:
        ways = dict.fromkeys((self._first, *self._by_key.values()))
        self.sessions = tuple(way.session for way in ways if way is not None and way.session)

    def opened(self, way: Way, key: int) -> None:
        self._open.append(way)
        self._by_key.pop(way.key, None)  # another node may answer at this address by now
        other = self._by_key.get(key)
        if other is not None and other.is_open:  # known under another address
            other.session.disconnected(0.0)
        way.key = key
        self._by_key[key] = way
        self.list_sessions()
        self.rejection = None
        self.events.way_opened(way)

    def lost(self, way: Way, unsent: list) -> None:
        self._open.remove(way)
        self.events.way_closed(way, unsent, True)
        if not self._open:
            self._begin_anew()

    def _begin(self, addresses: tuple) -> None:
        self._first = Way(self, None, addresses)
        self.list_sessions()

    def _begin_anew(self) -> None:
        for way in list(self._by_key.values()):
            self._remove(way)
        more = (front for front in self._fronts.values() if front)
        addresses = tuple(dict.fromkeys((*self.settings.addresses, *more)))
        self._fronts.clear()
        LOG.info("no session is left; trying %s", ", ".join(addresses))
        self._begin(addresses)
        self.events.all_ways_lost()

    def _remove(self, way: Way) -> None:
        del self._by_key[way.key]
        way.drop()
