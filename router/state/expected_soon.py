"""Prompts that an instance is only just computing: it will tell of their blocks in a moment, and holds them by then.

Without them, requests that arrive together and begin alike would not see each other. Only the newest few that begin
with the same block are kept.
"""

from collections import deque
from typing import NamedTuple

from router.core.prefix import common_blocks
from router.state.booking import Booking, BookingState
from router.state.text_marks import HASH_BYTES

TELLING_S = 0.5
"""How long after the first token the events of a prompt may be under way."""
_MOST_ALIKE = 8
_MOST_BEGINNINGS = 512


class Shared(NamedTuple):
    """The leading blocks of a prompt's text that another one begins with, and how many tokens that one has at most."""

    text_blocks: int
    most_tokens: int


NOTHING = Shared(0, 0)


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

    def shared(self, chain: bytes, now_s: float) -> Shared:
        """Return how much of a prompt's text is on its way."""
        alike = self._by_first.get(chain[:HASH_BYTES])
        if alike is None:
            return NOTHING
        current = [pair for pair in alike if _is_untold(pair[1], now_s)]
        if len(current) < len(alike):
            if not current:
                del self._by_first[chain[:HASH_BYTES]]
                return NOTHING
            self._by_first[chain[:HASH_BYTES]] = deque(current, _MOST_ALIKE)
        return max(Shared(common_blocks(other, chain), booking.kv_tokens) for other, booking in current)


def _is_untold(booking: Booking, now_s: float) -> bool:
    if booking.state is BookingState.BOOKED:
        return True
    return booking.answered_s is not None and now_s < booking.answered_s + TELLING_S
