"""A token bucket, alone or as the copy that one of several workers has of a bucket they share."""

from math import inf

MINUTE_S = 60.0
NEWS_S = 0.25
"""How often workers hear of each other."""


class Bucket:
    """Holds ``limit`` at most, and is filled with as much in a minute. Its level may be below 0.

    A shared one is drawn on elsewhere too, which is heard of a little later (:meth:`take_elsewhere`). Until the next
    news a worker gives away no more than its part of what the last ones left, so that all together give away no more
    than there is. Without news (:meth:`part`) it is a bucket of its own, as large as its part; what others gave away
    since the last news is unknown then, and so it begins with what was left to this worker alone.
    """

    __slots__ = ("_allowance", "_level", "_moved_s", "_news_s", "_sharers", "_whole", "limit")

    def __init__(self, limit: int, now_s: float) -> None:
        self.limit = limit
        self._sharers = 1
        self._whole = float(limit)
        self._level = self._whole
        self._allowance = inf
        self._moved_s = self._news_s = now_s

    def level(self, now_s: float) -> float:
        """Return what is in it."""
        if now_s > self._moved_s:
            self._level = min(self._whole, self._level + (now_s - self._moved_s) * self._whole / MINUTE_S)
            self._moved_s = now_s
        return self._level

    def take(self, amount: float, now_s: float) -> None:
        """Take out (or, negative, put back)."""
        self._allowance -= amount
        self.take_elsewhere(amount, now_s)

    def take_elsewhere(self, amount: float, now_s: float) -> None:
        """Take out what another worker has given away."""
        self._level = min(self._whole, self.level(now_s) - amount)

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long it takes until ``amount``, or all that it can hold, may be taken."""
        lacking = min(amount, self._whole) - self.level(now_s)
        if lacking > 0:
            return lacking * MINUTE_S / self._whole
        return NEWS_S if amount > self._allowance and self._allowance < self._whole / self._sharers else 0.0

    def shared(self, sharers: int, now_s: float) -> None:
        """News came, and was taken out: be the copy of one of so many workers."""
        self._become(float(self.limit), now_s)
        self._sharers = sharers
        self._news_s = now_s
        self._allowance = self.level(now_s) / sharers if sharers > 1 else inf

    def part(self, now_s: float) -> None:
        """No news come any more: be this worker's part."""
        if self._allowance == inf:
            return
        part = self.limit / self._sharers
        left = self._allowance + (now_s - self._news_s) * part / MINUTE_S
        self._become(part, now_s)
        self._level = min(self._level, left)
        self._allowance = inf

    def resized(self, limit: int, now_s: float) -> "Bucket":
        """Return a bucket of another limit that has been drawn on as much."""
        other = Bucket(limit, now_s)
        other.take(self._whole - self.level(now_s), now_s)
        return other

    def _become(self, whole: float, now_s: float) -> None:
        if whole != self._whole:
            drawn = (self._whole - self.level(now_s)) / self._whole
            self._whole = whole
            self._level = whole * (1 - drawn)
