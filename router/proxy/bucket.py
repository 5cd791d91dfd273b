"""A token bucket, alone or as the copy that one of several workers has of a bucket they share."""

from collections.abc import Sequence

MINUTE_S = 60.0
NEWS_S = 0.25
"""How often workers hear of each other."""
HEARD_FOR_S = 3.0
"""How long what was heard of other workers is good for."""


class Bucket:
    """Holds ``limit`` at most, and is filled with as much in a minute. Its level may be below 0.

    A shared one is drawn on elsewhere too, which is heard of a little later (:meth:`take_elsewhere`). Between two news
    a worker gives away no more than its part of what the last ones left, and its part of what flows in, so that all
    together give away no more than there is, however late or however long missing the news are. After a silence the
    parts are put together again (:meth:`rejoin`).
    """

    __slots__ = ("_level", "_moved_s", "_part", "_part_then", "_shared_s", "_sharers", "limit")

    def __init__(self, limit: int, now_s: float, sharers: int = 1) -> None:
        self.limit = limit
        self._sharers = sharers
        self._level = float(limit)
        self._part = self._part_then = limit / sharers
        """What this worker may give away until the next news; what it might when the last ones came."""
        self._moved_s = self._shared_s = now_s

    def level(self, now_s: float) -> float:
        """Return what is in it."""
        self._move(now_s)
        return self._level

    def remaining(self, now_s: float) -> float:
        """Return what can be promised: all that is in it, or, when news have not come for long, this worker's part."""
        self._move(now_s)
        return self._level if now_s <= self._shared_s + HEARD_FOR_S else min(self._level, self._part)

    def take(self, amount: float, now_s: float) -> None:
        """Take out (or, negative, put back)."""
        self.take_elsewhere(amount, now_s)
        self._part = min(self.limit / self._sharers, self._part - amount)

    def take_elsewhere(self, amount: float, now_s: float) -> None:
        """Take out what another worker has given away."""
        self._move(now_s)
        self._level = min(self.limit, self._level - amount)

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long it takes until ``amount``, or all that it can hold, may be taken."""
        self._move(now_s)
        lacking = min(amount, self.limit) - self._level
        if lacking > 0:
            return lacking * MINUTE_S / self.limit
        whole = self.limit / self._sharers
        return NEWS_S if self._part < min(amount, whole) else 0.0

    def share(self, sharers: int, now_s: float) -> None:
        """Everybody's news have come and are taken out: be the copy of one of so many workers."""
        self._move(now_s)
        self._sharers = sharers
        self._part = self._part_then = self._level / sharers
        self._shared_s = now_s

    def rejoin(self, given_elsewhere: Sequence[float], now_s: float) -> None:
        """Put the parts together after a silence, in which the other workers have given away so much each."""
        self._move(now_s)
        whole = self.limit / self._sharers
        most = self._part_then + (now_s - self._shared_s) * whole / MINUTE_S
        left = sum(max(0.0, min(whole, most - given)) for given in given_elsewhere)
        self._level = min(self.limit, self._part + left)

    def resized(self, limit: int, now_s: float) -> "Bucket":
        """Return a bucket of another limit that has been drawn on as much."""
        other = Bucket(limit, now_s, self._sharers)
        other._level -= self.limit - self.level(now_s)
        other._part = other._part_then = other._part - (self.limit / self._sharers - self._part)
        return other

    def _move(self, now_s: float) -> None:
        """Let time pass: so much has flowed in."""
        if now_s > self._moved_s:
            inflow = (now_s - self._moved_s) * self.limit / MINUTE_S
            self._level = min(self.limit, self._level + inflow)
            self._part = min(self.limit / self._sharers, self._part + inflow / self._sharers)
            self._moved_s = now_s
