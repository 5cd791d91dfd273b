"""Arrivals of the last minute by class: a sliding window of whole buckets, each counted by a sketch of its own."""

from collections import deque

from router.core.hotspot.space_saving import ClassCount, SpaceSaving

BUCKETS = 6
CAPACITY = 64
"""Counters of a bucket: a count is too high by at most 1/64 of the arrivals."""


class ClassWindow:
    """The present bucket and the last six full ones: between ``window_s`` and 7/6 of it.

    Memory is bounded by 7 x 64 counters, whatever arrives.
    """

    __slots__ = (
        "_begun_s",
        "_bucket_s",
        "_full",
        "_full_arrivals",
        "_full_counts",
        "_now",
        "counts",
        "ends_s",
        "now_arrivals",
        "window_s",
    )

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._bucket_s = window_s / BUCKETS
        self._full: deque[tuple[int, SpaceSaving]] = deque()
        self._full_arrivals = 0
        self._full_counts: dict[bytes, ClassCount] = {}
        self._now = SpaceSaving(CAPACITY)
        self.counts = self._now.counts
        """Counts of the present bucket by class key; callers add to them."""
        self.now_arrivals = 0
        """Arrivals in the present bucket; a caller that adds an arrival counts it here."""
        self._begun_s: float | None = None
        self.ends_s = 0.0
        """When the present bucket ends; :meth:`turn` is due then."""

    @property
    def arrivals(self) -> int:
        """Requests in the window, those without a class included."""
        return self._full_arrivals + self.now_arrivals

    def open(self, prefix: bytes, model: str) -> ClassCount:
        """Make a counter in the present bucket for a class that has none there; the caller counts the arrival."""
        return self._now.open(prefix, model)

    def requests(self, key: bytes) -> int:
        """Return the requests of a class in the window."""
        now, full = self.counts.get(key), self._full_counts.get(key)
        return (0 if now is None else now.requests) + (0 if full is None else full.requests)

    def count(self, key: bytes) -> ClassCount | None:
        """Return the counts of a class in the window; None when it has none."""
        parts = [c for c in (self._full_counts.get(key), self.counts.get(key)) if c is not None]
        return _sum([{key: part} for part in parts]).get(key)

    def covered_s(self, now_s: float) -> float:
        """Return for how long it has counted without a silence of a whole window, at most ``window_s``.

        Shares in a window that covers less stand for too few requests to tell a hot class from the first few of it.
        """
        return 0.0 if self._begun_s is None else min(self.window_s, now_s - self._begun_s)

    def turn(self, now_s: float) -> None:
        """Close buckets that have ended and forget those that are out of the window."""
        passed = int((now_s - self.ends_s) / self._bucket_s) + 1
        if passed < 1:
            return
        if self._begun_s is None or passed > BUCKETS:
            self._begun_s = now_s
        self._full.append((self.now_arrivals, self._now))
        self._full.extend((0, SpaceSaving(CAPACITY)) for _ in range(min(passed - 1, BUCKETS)))
        while len(self._full) > BUCKETS:
            self._full.popleft()
        self._now = SpaceSaving(CAPACITY)
        self.counts = self._now.counts
        self.now_arrivals = 0
        self.ends_s += passed * self._bucket_s
        self._full_arrivals = sum(arrivals for arrivals, _ in self._full)
        self._full_counts = _sum([sketch.counts for _, sketch in self._full])

    def classes(self) -> dict[bytes, ClassCount]:
        """Return the counts of every class in the window."""
        return _sum([self._full_counts, self.counts])


def _sum(parts: list[dict[bytes, ClassCount]]) -> dict[bytes, ClassCount]:
    total: dict[bytes, ClassCount] = {}
    for part in parts:
        for key, count in part.items():
            known = total.get(key)
            if known is None:
                known = total[key] = ClassCount(count.prefix, count.model)
            known.add(count)
    return total
