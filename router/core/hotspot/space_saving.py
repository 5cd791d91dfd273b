"""The space-saving sketch: the most frequent classes of a stream, counted in bounded memory.

Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005.
With ``capacity`` counters and n arrivals, every class that arrived more than n / capacity times is there; a count is
never too low, and too high by its ``error`` at most, which is at most n / capacity.
"""

from router.core.hotspot.prefix_class import HASH_BYTES


class ClassCount:
    """What is counted for one class. ``requests`` may be too high by ``error``."""

    __slots__ = ("error", "hits", "mitigated", "model", "prefix", "requests")

    def __init__(self, prefix: bytes, model: str, requests: int = 0) -> None:
        self.prefix = prefix
        """The chain up to the key."""
        self.model = model
        """Model of the request that opened this counter."""
        self.requests = requests
        self.error = requests
        self.hits = 0
        """Requests that went to an instance that held the prefix."""
        self.mitigated = 0
        """Requests that were kept away from the holders."""

    def add(self, other: "ClassCount") -> None:
        """Add the counts of the same class elsewhere."""
        self.requests += other.requests
        self.error += other.error
        self.hits += other.hits
        self.mitigated += other.mitigated


class SpaceSaving:
    """At most ``capacity`` counters. Callers count by ``counts[key].requests += 1``, or :meth:`open` one first.

    Both take constant time on average.
    """

    __slots__ = ("_capacity", "_least", "_level", "counts")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}, but must be at least 1")
        self._capacity = capacity
        self.counts: dict[bytes, ClassCount] = {}
        """By class key."""
        self._least = 0
        self._level: list[bytes] = []
        """Keys whose counts were the smallest (``_least``) when it was last looked; some have grown since."""

    def open(self, prefix: bytes, model: str) -> ClassCount:
        """Make a counter for a class that has none, in the place of the rarest one where there is no room.

        It starts with the count of the one it replaces; the caller counts the arrival itself.
        """
        replaced = self._make_room()
        count = self.counts[prefix[-HASH_BYTES:]] = ClassCount(prefix, model, replaced)
        return count

    def _make_room(self) -> int:
        """Drop the rarest class where there is no room; return its count, which its successor starts with."""
        if len(self.counts) < self._capacity:
            return 0
        return self.counts.pop(self._rarest()).requests

    def _rarest(self) -> bytes:
        counts = self.counts
        while True:
            while self._level:
                key = self._level.pop()
                count = counts.get(key)
                if count is not None and count.requests == self._least:
                    return key
            self._least = min(count.requests for count in counts.values())
            self._level = [key for key, count in counts.items() if count.requests == self._least]
