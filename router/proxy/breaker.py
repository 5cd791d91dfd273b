"""Passive ejection: an instance that keeps failing is left alone for a while, then tried with one request.

Life-cycle, as a table::

    state      event               next       effect
    CLOSED     success             CLOSED     consecutive failures = 0
    CLOSED     n-th failure        OPEN       ejected, back-off begins
    OPEN       back-off over       HALF_OPEN  back in rotation
    HALF_OPEN  chosen              TRIAL      ejected again until this one request has its verdict
    TRIAL      success             CLOSED     back in rotation, back-off forgotten
    TRIAL      failure             OPEN       back-off doubled, up to its limit
    TRIAL      ended without one   HALF_OPEN  (the client went away)

Success is any answer that is not a server error: what a client did wrong never counts against an engine. A refused
connection ends CLOSED at once: nobody listens there.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec


class BreakerState(Enum):
    """Where an instance's breaker is."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    TRIAL = "trial"


class BreakerRule(msgspec.Struct, frozen=True, kw_only=True):
    """When to eject, and for how long."""

    failures: int = 3
    """Consecutive failures that open a breaker."""
    first_backoff_s: float = 1.0
    most_backoff_s: float = 60.0


_CLOSED: Final = BreakerState.CLOSED
_OPEN: Final = BreakerState.OPEN
_HALF_OPEN: Final = BreakerState.HALF_OPEN
_TRIAL: Final = BreakerState.TRIAL


class Breaker:
    """One instance's breaker; ``eject`` is told whenever the instance leaves or re-enters rotation."""

    def __init__(self, rule: BreakerRule, eject: Callable[[bool], None]) -> None:
        self._rule = rule
        self._eject = eject
        self.state = _CLOSED
        self.failures = 0
        """Consecutive failures."""
        self.openings = 0
        self._backoff_s = rule.first_backoff_s
        self._until_s = 0.0
        self._trial: object | None = None

    def chosen(self, attempt: object) -> None:
        """A request is about to be sent."""
        if self.state is _HALF_OPEN:
            self.state = _TRIAL
            self._trial = attempt
            self._eject(True)

    def succeeded(self) -> None:
        """The instance answered."""
        self.failures = 0
        if self.state is not _CLOSED:
            self.state = _CLOSED
            self._backoff_s = self._rule.first_backoff_s
            self._trial = None
            self._eject(False)

    def failed(self, attempt: object, now_s: float, *, certain: bool) -> None:
        """An attempt failed; ``certain`` when there is no doubt that the next one would, too."""
        self.failures += 1
        if self.state is _TRIAL:
            if attempt is self._trial:
                self._backoff_s = min(self._backoff_s * 2, self._rule.most_backoff_s)
                self._open(now_s)
        elif self.state is _HALF_OPEN or (self.state is _CLOSED and (certain or self.failures >= self._rule.failures)):
            self._open(now_s)

    def ended(self, attempt: object) -> None:
        """An attempt ended; when it was the trial and brought no verdict, the next request is the trial."""
        if self.state is _TRIAL and attempt is self._trial:
            self._half_open()

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        if self.state is _OPEN and now_s >= self._until_s:
            self._half_open()

    def left_s(self, now_s: float) -> float:
        """Return how much of the back-off is left."""
        return max(0.0, self._until_s - now_s)

    def reset(self) -> None:
        """Another engine stands behind the name now: begin anew."""
        self.failures = 0
        self._backoff_s = self._rule.first_backoff_s
        self._trial = None
        if self.state is not _CLOSED:
            self.state = _CLOSED
            self._eject(False)

    def _open(self, now_s: float) -> None:
        self.state = _OPEN
        self.openings += 1
        self._trial = None
        self._until_s = now_s + self._backoff_s
        self._eject(True)

    def _half_open(self) -> None:
        self.state = _HALF_OPEN
        self._trial = None
        self._eject(False)
