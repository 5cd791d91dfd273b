"""Finding saturation: the highest rate at which a fleet still ends what arrives.

Past saturation the backlog grows for as long as requests come, so fewer end in the measured span than arrive.
"""

from collections.abc import Callable

import msgspec

from router.sim.errors import ScenarioError
from router.sim.metrics import RunSummary

STABLE_COMPLETION = 0.95
"""Least share of the arrivals that end in the measured span while a rate counts as sustained."""
_LARGEST_FACTOR = 4096.0


class Saturation(msgspec.Struct, frozen=True):
    """The highest sustained rate that was found, and the lowest one that was not."""

    rate_scale: float
    requests_per_s: float
    unsustained_rate_scale: float


def sustained(summary: RunSummary) -> bool:
    """Say whether a run ended what arrived."""
    return summary.completed_per_arrived >= STABLE_COMPLETION and summary.refused == 0


def find_saturation(run: Callable[[float], RunSummary], *, start: float = 1.0, precision: float = 0.03) -> Saturation:
    """Bisect the rate scale until the bracket is within ``precision`` (relative).

    :param run: runs a policy at a rate scale.
    :param start: a rate scale to begin with.
    :raises ScenarioError: when no rate scale up to 4096, or down to its inverse, brackets saturation.
    """
    low, summary, high = _bracket(run, start)
    while high / low > 1 + precision:
        middle = (low * high) ** 0.5
        attempt = run(middle)
        if sustained(attempt):
            low, summary = middle, attempt
        else:
            high = middle
    return Saturation(low, summary.requests_per_s, high)


def _bracket(run: Callable[[float], RunSummary], start: float) -> tuple[float, RunSummary, float]:
    """Return a sustained rate with its summary, and an unsustained rate at most twice as high."""
    rate = start
    summary = run(rate)
    if sustained(summary):
        while rate < _LARGEST_FACTOR:
            faster = run(rate * 2)
            if not sustained(faster):
                return rate, summary, rate * 2
            rate, summary = rate * 2, faster
        raise ScenarioError(f"the fleet sustains {rate:g} times the rate of the trace; use a longer trace")
    while rate > 1 / _LARGEST_FACTOR:
        rate /= 2
        summary = run(rate)
        if sustained(summary):
            return rate, summary, rate * 2
    raise ScenarioError("the fleet does not sustain any rate of this trace")
