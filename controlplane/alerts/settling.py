"""From findings to certainty: a condition must be seen several times before it is an alert, and missed several times
before it is over.

Pure. Each condition has a tally of evaluations in a row in which it was seen, and in which it was not. A condition
that keeps coming back has to stay away longer each time: the number of quiet evaluations it takes to resolve doubles
with every recent recurrence, up to ``LONGEST_QUIET``.
"""

from dataclasses import dataclass
from enum import StrEnum

LONGEST_QUIET = 60
"""Evaluations, so ten minutes at one every ten seconds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How many evaluations in a row it takes (each >= 1)."""

    raise_after: int
    resolve_after: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Evaluations in a row; at least one of the two is 0."""

    seen: int = 0
    quiet: int = 0


class Verdict(StrEnum):
    """What one more evaluation makes of a condition."""

    WAIT = "wait"
    STANDS = "stands"
    """It has been seen often enough: raise, or keep."""
    OVER = "over"
    """It has been quiet for long enough: resolve, or forget."""


def count(tally: Tally, seen: bool) -> Tally:
    """Count one evaluation in."""
    return Tally(seen=tally.seen + 1) if seen else Tally(quiet=tally.quiet + 1)


def judge(tally: Tally, patience: Patience, *, is_open: bool, recurrences: int = 0) -> Verdict:
    """Return what a tally means for a condition whose alert is open or not.

    :param recurrences: how often the open alert came back after it had been resolved.
    """
    if tally.seen:
        return Verdict.STANDS if is_open or tally.seen >= patience.raise_after else Verdict.WAIT
    if not is_open:
        return Verdict.OVER
    return Verdict.OVER if tally.quiet >= quiet_needed(patience, recurrences) else Verdict.WAIT


def quiet_needed(patience: Patience, recurrences: int) -> int:
    """Return how many quiet evaluations in a row resolve an alert."""
    longest = max(patience.resolve_after, LONGEST_QUIET)
    return int(min(longest, patience.resolve_after * 2 ** min(recurrences, 16)))
