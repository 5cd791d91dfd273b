"""A sum over a sliding time window, in coarse buckets."""

from collections import deque


class WindowedSum:
    """The sum of what was added in the last ``window_s`` seconds, exact to one bucket of ``window_s / buckets``."""

    __slots__ = ("_bucket_s", "_parts", "_window", "total")

    def __init__(self, window_s: float, buckets: int = 18) -> None:
        self._bucket_s = window_s / buckets
        self._window = buckets
        self._parts: deque[tuple[int, int]] = deque()
        self.total = 0

    def add(self, value: int, now_s: float) -> int:
        """Add a value at ``now_s`` (never before the last one) and return the new total."""
        bucket = int(now_s / self._bucket_s)
        if self._parts and self._parts[-1][0] == bucket:
            self._parts[-1] = (bucket, self._parts[-1][1] + value)
        else:
            self._parts.append((bucket, value))
        self.total += value
        return self.expire(now_s)

    def expire(self, now_s: float) -> int:
        """Drop what is older than the window at ``now_s`` and return the new total."""
        oldest = int(now_s / self._bucket_s) - self._window
        while self._parts and self._parts[0][0] <= oldest:
            self.total -= self._parts.popleft()[1]
        return self.total
