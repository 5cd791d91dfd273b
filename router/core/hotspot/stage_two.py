"""Stage 2: when requests of a watched class must go elsewhere, decision by decision.

::

    state        a request of the class               next
    counting     outside scored better                counting from 0
    counting     holders won, at most factor * |M|    counting on
    counting     holders won, more than factor * |M|  mitigated
    mitigated    within the longest duration          mitigated
    mitigated    later                                counting from 0

When the class is no longer watched its state is dropped, which releases it.
"""

from collections.abc import Sequence

import msgspec

from router.core.candidate import Candidate
from router.core.terms import HotspotRule


class Contest(msgspec.Struct, frozen=True):
    """A request of a watched class: how many candidates held its prefix, and whether the best of them won."""

    holders: int
    holders_won: bool
    """The best score inside M was at most the best one outside; false where either has no candidate."""


class StageTwo(msgspec.Struct, frozen=True):
    """Where a watched class stands."""

    consecutive: int = 0
    """Requests in a row that the holders won."""
    mitigated_since_s: float | None = None


def contest(
    candidates: Sequence[Candidate], scores: Sequence[float], matched_blocks: Sequence[int], depth: int
) -> Contest:
    """Compare the holders of the first ``depth`` blocks with the others, by their scores for one request."""
    inside: list[float] = []
    outside: list[float] = []
    for candidate, score in zip(candidates, scores, strict=True):
        (inside if matched_blocks[candidate.view.slot] >= depth else outside).append(score)
    return Contest(len(inside), bool(inside and outside) and min(inside) <= min(outside))


def after_contest(state: StageTwo, contest: Contest, rule: HotspotRule, now_s: float) -> StageTwo:
    """Return where a class that is not mitigated stands after one more of its requests."""
    if not contest.holders_won:
        return StageTwo()
    consecutive = state.consecutive + 1
    return StageTwo(consecutive, now_s if consecutive > rule.factor * contest.holders else None)


def still_mitigated(state: StageTwo, rule: HotspotRule, now_s: float) -> bool:
    """Say whether a mitigation is in force and has not lasted too long."""
    since_s = state.mitigated_since_s
    return since_s is not None and now_s - since_s < rule.max_duration_s
