"""The outcome of one decision, with everything needed to explain it."""

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from router.core.candidate import Candidate
from router.core.filters.p_token_cap import cap_reason
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import HotClass
from router.core.terms import AboveCap


class ScoredRow(msgspec.Struct, frozen=True):
    """One line of the explanation: a candidate and its score, or the reason it was out."""

    candidate: Candidate
    score: float | None
    filtered: str | None


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Which instance was chosen and why.

    ``scores`` is aligned with ``candidates``, the instances that passed every filter; ``rejected`` pairs the others
    with a reason. ``chosen_index`` points into ``candidates``; None when nothing was left to choose. ``hot`` is the
    request's prefix class while it is mitigated, which keeps its holders out where another instance is left.
    """

    request: Request
    policy: Policy
    candidates: Sequence[Candidate]
    scores: Sequence[float]
    chosen_index: int | None
    rejected: Sequence[tuple[Candidate, str]]
    hot: HotClass | None = None

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate, or None."""
        return None if self.chosen_index is None else self.candidates[self.chosen_index]

    @property
    def score(self) -> float | None:
        """The score of the chosen candidate, or None."""
        return None if self.chosen_index is None else self.scores[self.chosen_index]

    @property
    def shed(self) -> bool:
        """Whether the request is refused because every instance that could take it is above the policy's cap."""
        cap = self.policy.p_token_cap
        if self.chosen_index is not None or cap is None or self.policy.above_cap is not AboveCap.SHED:
            return False
        return any(reason == cap_reason(candidate, cap) for candidate, reason in self.rejected)

    @property
    def above_cap(self) -> bool:
        """Whether the request went to the least bad of instances that are all above the policy's P-token cap."""
        cap = self.policy.p_token_cap
        return cap is not None and self.chosen_index is not None and self.candidates[self.chosen_index].p_token > cap

    @property
    def margin(self) -> float | None:
        """How much worse the runner-up scored, as a difference (>= 0); None with fewer than two candidates."""
        if self.chosen_index is None or len(self.scores) < 2:
            return None
        others = (score for i, score in enumerate(self.scores) if i != self.chosen_index)
        return min(others) - self.scores[self.chosen_index]

    def rows(self) -> list[ScoredRow]:
        """Explain every instance: scored ones from best to worst (the chosen one first), then those filtered out."""
        order = sorted(
            ((score, i != self.chosen_index, i) for i, score in enumerate(self.scores)), key=itemgetter(0, 1, 2)
        )
        scored = [ScoredRow(self.candidates[i], score, None) for score, _, i in order]
        return scored + [ScoredRow(candidate, None, reason) for candidate, reason in self.rejected]
