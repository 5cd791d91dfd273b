"""Drift: requests that this worker has booked at an engine and that the engine does not have.

Between a booking and its arrival, and between an end there and its arrival here, a few always differ; only what stays
over several reports in a row is drift. It points at requests lost on the way, or at bookings that were never released.
"""

from collections import deque

REPORTS = 5


class Drift:
    """The drift of one instance."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: deque[int] = deque(maxlen=REPORTS)

    def reported(self, own_requests: int, reported_requests: int | None) -> None:
        """Take in a report; ``own_requests`` is the fewest that were booked while it was under way."""
        if reported_requests is None:
            self._last.clear()
        else:
            self._last.append(own_requests - reported_requests)

    def forget(self) -> None:
        """Another engine stands behind the name now."""
        self._last.clear()

    @property
    def requests(self) -> int:
        """Requests too many here, in each of the last reports; 0 until there were enough of them."""
        return max(0, min(self._last)) if len(self._last) == REPORTS else 0
