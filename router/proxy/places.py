"""Places for connections: when all are taken, the client that has been idle longest makes way for a newcomer."""

from collections import deque
from collections.abc import Iterable
from typing import Protocol

LEAST_IDLE_S = 1.0
"""Clients that asked something more recently keep their place: they are likely to ask again."""
LISTED = 1024
"""How many idle clients are listed at a time, and as many may make way before they are looked for again."""
LIST_EVERY_S = 0.25
"""How often idle clients are looked for at most, for that takes a look at every client."""


class Idler(Protocol):
    """A client connection."""

    @property
    def idle_since_s(self) -> float | None:
        """Since when it has asked nothing (monotonic seconds); None while it asks or is answered."""
        ...

    def make_way(self) -> None:
        """Close, though the time limit for idle connections is not over."""
        ...


class Places:
    """The places of one worker; ``most`` connections, with clients and engines together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._line: deque[tuple[float, Idler]] = deque()
        self._list_at_s = 0.0

    def make_room(self, clients: Iterable[Idler], now_s: float) -> bool:
        """Have one client make way; False when none has been idle for long enough."""
        if self._make_way(now_s):
            return True
        if now_s < self._list_at_s:
            return False
        self._list_at_s = now_s + LIST_EVERY_S
        idle = [(since_s, client) for client in clients if (since_s := client.idle_since_s) is not None]
        idle.sort(key=lambda entry: entry[0])
        self._line = deque(idle[:LISTED])
        return self._make_way(now_s)

    def _make_way(self, now_s: float) -> bool:
        while self._line:
            since_s, client = self._line[0]
            if since_s > now_s - LEAST_IDLE_S:
                return False
            self._line.popleft()
            if client.idle_since_s == since_s:  # neither gone nor busy since
                client.make_way()
                return True
        return False
