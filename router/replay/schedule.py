"""When requests are due: a trace's arrival times, made smooth where the recording rounded them."""

from collections.abc import Sequence
from itertools import groupby

LAST_GAP_S = 3.0
"""How long the last batch of a trace is taken to last when there is no other batch to compare with."""


def spread_batches(arrivals_s: Sequence[float]) -> list[float]:
    """Spread requests that share one timestamp evenly over the time up to the next one.

    Mooncake's timestamps are rounded to batches about every three seconds; sent as they are, every batch would be a
    burst that never happened. The order stays, and each request stays within its batch's interval. The last batch is
    given the length of the one before.
    """
    batches = [(moment, len(list(group))) for moment, group in groupby(arrivals_s)]
    spread: list[float] = []
    for index, (moment, size) in enumerate(batches):
        gap = _gap(batches, index)
        spread += [moment + gap * position / size for position in range(size)]
    return spread


def _gap(batches: Sequence[tuple[float, int]], index: int) -> float:
    if index + 1 < len(batches):
        return batches[index + 1][0] - batches[index][0]
    if index > 0:
        return batches[index][0] - batches[index - 1][0]
    return LAST_GAP_S
