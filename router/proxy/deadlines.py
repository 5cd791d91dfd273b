"""Time limits without a timer each: things with a deadline, looked through a few times a second."""

from math import inf
from typing import Final, Protocol

NEVER: Final = inf


class Timed(Protocol):
    """Something that waits, until ``deadline_s`` (monotonic) at most."""

    deadline_s: float

    def on_deadline(self, now_s: float) -> None:
        """The wait took too long; the deadline must be moved or the thing be ended."""
        ...


class Deadlines:
    """The things that wait. A late deadline is noticed at the next sweep."""

    def __init__(self) -> None:
        self._timed: set[Timed] = set()

    def __len__(self) -> int:
        return len(self._timed)

    def add(self, timed: Timed) -> None:
        """Watch a thing until it is discarded."""
        self._timed.add(timed)

    def discard(self, timed: Timed) -> None:
        """Stop watching a thing."""
        self._timed.discard(timed)

    def sweep(self, now_s: float) -> None:
        """Tell everything that is due."""
        for timed in [t for t in self._timed if t.deadline_s <= now_s]:
            timed.on_deadline(now_s)
