"""The smallest score wins; equal ones are told apart by the scorer's rule."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.scorers.spec import TieBreak


def pick_smallest(
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    tie_break: TieBreak,
    rng: Random,
    preferred: int | None = None,
) -> int:
    """Return the index of the winner; ``candidates`` and ``scores`` are aligned and not empty.

    :param preferred: slot of a candidate that wins any tie it is part of.
    """
    best = min(scores)
    first = scores.index(best)
    if tie_break is TieBreak.FIRST or scores.count(best) == 1:
        return first
    tied = [i for i, score in enumerate(scores) if score == best]
    if preferred is not None:
        for i in tied:
            if candidates[i].view.slot == preferred:
                return i
    if tie_break is TieBreak.RANDOM:
        return rng.choice(tied)
    return min(tied, key=lambda i: candidates[i].view.last_chosen)
