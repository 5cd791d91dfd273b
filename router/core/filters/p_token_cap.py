"""Instances with more P-token than the policy's cap."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation
from router.core.terms import AboveCap


def above_p_token_cap(
    request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation
) -> Rejections:
    """Reject candidates above the cap; when all are, keep the least bad one, or none where the policy sheds."""
    cap = policy.p_token_cap
    if cap is None:
        return {}
    out = {position: cap_reason(c, cap) for position, c in enumerate(candidates) if c.p_token > cap}
    if out and len(out) == len(candidates) and policy.above_cap is AboveCap.LEAST_BAD:
        del out[min(out, key=lambda position: candidates[position].p_token)]
    return out


def cap_reason(candidate: Candidate, cap: int) -> str:
    """Say why a candidate is above the cap."""
    return f"P-token {candidate.p_token} is above the cap {cap}"
