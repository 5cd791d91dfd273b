"""A token bucket, alone or as the copy that one of several workers has of a bucket they share."""

from collections.abc import Sequence

import msgspec

MINUTE_S = 60.0
NEWS_S = 0.25
"""How often workers hear of each other."""
HEARD_FOR_S = 3.0
"""How long what was heard of other workers is good for."""


class Elsewhere(msgspec.Struct, frozen=True):
    """News of another worker: what it has given away since the news before, and what it may at most give away now."""

    given: float
    left: float
    since_s: float
    """From when on inflow may have come to ``left``: at the latest when it was told."""


class Bucket:
    """Holds ``limit`` at most, and is filled with as much in a minute. Its level may be below 0.

    A shared one is drawn on elsewhere too, which is heard of a little later (:meth:`hear`). So each worker has a part:
    what it may give away until it hears more. Its share of what flows in comes to it; what is left of other workers'
    parts, as they told, is out of its reach. All parts together are never more than there is, however late news are,
    and however long they are missing. Everybody keeps no more than an equal part of what it knows to be there, so that
    what one leaves another can use.
    """

    __slots__ = ("_heard_s", "_level", "_moved_s", "_part", "_sharers", "limit")

    def __init__(self, limit: int, now_s: float, sharers: int = 1) -> None:
        self.limit = limit
        self._sharers = sharers
        self._level = float(limit)
        self._part = limit / sharers
        self._moved_s = self._heard_s = now_s

    def level(self, now_s: float) -> float:
        """Return what is in it."""
        self._move(now_s)
        return self._level

    def remaining(self, now_s: float) -> float:
        """Return what can be promised: all that is in it, or, when news have not come for long, this worker's part."""
        self._move(now_s)
        return self._level if now_s <= self._heard_s + HEARD_FOR_S else min(self._level, self._part)

    def part(self, now_s: float) -> float:
        """Return what this worker may give away until it hears more."""
        self._move(now_s)
        return self._part

    def take(self, amount: float, now_s: float) -> None:
        """Take out (or, negative, put back)."""
        self._move(now_s)
        self._level = min(self.limit, self._level - amount)
        most = self.limit / self._sharers if amount > 0 else max(self._part, self._level / self._sharers)
        self._part = min(most, self._part - amount)

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long it takes until ``amount``, or all that it can hold, may be taken."""
        self._move(now_s)
        lacking = min(amount, self.limit) - self._level
        if lacking > 0:
            return lacking * MINUTE_S / self.limit
        return NEWS_S if self._part < min(amount, self.limit / self._sharers) else 0.0

    def hear(self, others: Sequence[Elsewhere], sharers: int, now_s: float) -> None:
        """News came of the other workers; they and this one are so many."""
        self._move(now_s)
        self._sharers, self._heard_s = sharers, now_s
        share = self.limit / sharers
        part = min(share, self._part)
        level = self._level - sum(one.given for one in others)
        self._level = min(self.limit, max(level, part + sum(min(share, one.left) for one in others)))
        out_of_reach = sum(one.left + (now_s - one.since_s) * share / MINUTE_S for one in others)
        free = max(0.0, self._level - part - out_of_reach)  # for all, who see it at one time
        self._part = min(self._level, part * sharers + free) / sharers

    def resized(self, limit: int, now_s: float) -> "Bucket":
        """Return a bucket of another limit that has been drawn on as much."""
        other = Bucket(limit, now_s, self._sharers)
        other._level -= self.limit - self.level(now_s)
        other._part -= self.limit / self._sharers - self._part
        other._heard_s = self._heard_s
        return other

    def _move(self, now_s: float) -> None:
        """Let time pass: so much has flowed in."""
        if now_s > self._moved_s:
            inflow = (now_s - self._moved_s) * self.limit / MINUTE_S
            self._level = min(self.limit, self._level + inflow)
            self._part = min(self.limit / self._sharers, self._part + inflow / self._sharers)
            self._moved_s = now_s
