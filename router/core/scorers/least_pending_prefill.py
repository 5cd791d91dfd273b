"""Least pending prefill: P-token alone, the exponents (1, 0) of the product."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``Q + new`` per candidate."""
    return [c.view.queued_prefill_tokens + c.new_tokens for c in candidates]


LEAST_PENDING_PREFILL = ScorerSpec(
    name="least_pending_prefill",
    score=score,
    meaning="P-token: queued and new prefill tokens",
    source="the exponents (1, 0) of the product; the prefill-only rule in arXiv 2603.15202",
)
