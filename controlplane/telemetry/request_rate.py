"""Requests per second, right also when a delivery is late and covers many seconds at once."""

from collections import deque

RATE_SPAN_S = 10.0


class RequestRate:
    """The rate over the ``RATE_SPAN_S`` seconds that end with the last delivery.

    A delivery of n requests covers the ``interval_s`` before it; the part of it that overlaps the span counts. Several
    workers deliver for the same time, so the divisor is the span since the first delivery began, never a sum of
    intervals.
    """

    def __init__(self) -> None:
        self._deliveries: deque[tuple[float, float, int]] = deque()
        self._began_s: float | None = None

    def add(self, at_s: float, interval_s: float, requests: int) -> None:
        """Count a delivery that arrived at ``at_s``."""
        interval_s = max(interval_s, 1e-3)
        if not self._deliveries:
            self._began_s = at_s - interval_s
        self._deliveries.append((at_s, interval_s, requests))
        self._let_go(at_s)

    def per_second(self, now_s: float) -> float | None:
        """Return the rate; None when nothing was delivered in the span."""
        self._let_go(now_s)
        if not self._deliveries or self._began_s is None:
            return None
        end_s = self._deliveries[-1][0]
        start_s = max(end_s - RATE_SPAN_S, self._began_s)
        requests = sum(
            count * max(0.0, at_s - max(start_s, at_s - interval_s)) / interval_s
            for at_s, interval_s, count in self._deliveries
        )
        return requests / max(end_s - start_s, 1e-3)

    def _let_go(self, now_s: float) -> None:
        while self._deliveries and self._deliveries[0][0] <= now_s - RATE_SPAN_S:
            self._deliveries.popleft()
