"""Room for request bytes: when there is none, the largest requests still on their way make it for smaller ones."""

from collections.abc import Iterable
from typing import Protocol

LOOK_EVERY_S = 0.25
"""How often room is made at most, for that takes a look at every client."""


class Holder(Protocol):
    """A client connection."""

    @property
    def arriving_bytes(self) -> int:
        """Bytes that are held of a request that is not whole yet; 0 when there is none."""
        ...

    def give_up(self) -> None:
        """Refuse the request that is on its way, and hold nothing of it any more."""
        ...


class Room:
    """Makes room for one worker."""

    def __init__(self) -> None:
        self._look_at_s = 0.0

    def make(self, holders: Iterable[Holder], asker_bytes: int, wanted_bytes: int, now_s: float) -> bool:
        """Have holders of more than ``asker_bytes`` give up, until ``wanted_bytes`` are free; False when none did."""
        if now_s < self._look_at_s:
            return False
        self._look_at_s = now_s + LOOK_EVERY_S
        larger = [(held, holder) for holder in holders if (held := holder.arriving_bytes) > asker_bytes]
        larger.sort(key=lambda entry: entry[0], reverse=True)
        freed = 0
        for held, holder in larger:
            if freed >= wanted_bytes:
                break
            holder.give_up()
            freed += held
        return freed > 0
