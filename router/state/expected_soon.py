"""Prompts that an instance is only just computing: it will tell of their blocks in a moment, and holds them by then.

Without them, requests that arrive together and begin alike would not see each other. Only the newest few that begin
with the same block are kept.
"""

from collections import deque

from router.core.prefix import common_blocks
from router.state.booking import Booking, BookingState
from router.state.text_marks import HASH_BYTES

TELLING_S = 0.5
"""How long after the first token the events of a prompt may be under way."""
_MOST_ALIKE = 8
_MOST_BEGINNINGS = 512


class ExpectedSoon:
    """The bookings of one instance whose prompts it has not told yet."""

    __slots__ = ("_by_first",)

    def __init__(self) -> None:
        self._by_first: dict[bytes, deque[tuple[bytes, Booking]]] = {}

    def add(self, chain: bytes, booking: Booking) -> None:
        """Expect the prompt of a booking."""
        first = chain[:HASH_BYTES]
        if not first:
            return
        alike = self._by_first.pop(first, None)
        if alike is None:
            if len(self._by_first) >= _MOST_BEGINNINGS:
                del self._by_first[next(iter(self._by_first))]
            alike = deque(maxlen=_MOST_ALIKE)
        alike.append((chain, booking))
        self._by_first[first] = alike

    def clear(self) -> None:
        """Expect nothing any more."""
        self._by_first.clear()

    def shared_blocks(self, chain: bytes, now_s: float) -> int:
        """Return how many leading blocks of a prompt's text are on their way."""
        alike = self._by_first.get(chain[:HASH_BYTES])
        if alike is None:
            return 0
        current = [pair for pair in alike if _is_untold(pair[1], now_s)]
        if len(current) < len(alike):
            if not current:
                del self._by_first[chain[:HASH_BYTES]]
                return 0
            self._by_first[chain[:HASH_BYTES]] = deque(current, _MOST_ALIKE)
        return max(common_blocks(other, chain) for other, _ in current)


def _is_untold(booking: Booking, now_s: float) -> bool:
    if booking.state is BookingState.BOOKED:
        return True
    return booking.answered_s is not None and now_s < booking.answered_s + TELLING_S
