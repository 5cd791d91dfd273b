"""Cold instances that have their share of requests already."""

from collections.abc import Sequence

from router.core.candidate import Candidate
from router.core.cold_start import is_cold, warm_mean_bs
from router.core.filters.spec import Rejections
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation


def cold_enough(request: Request, candidates: Sequence[Candidate], policy: Policy, situation: Situation) -> Rejections:
    """Reject cold instances whose BS would exceed the policy's share of the mean of the warm ones.

    An idle one is always let in, or it would never become warm; without a warm instance there is nothing to spare.
    """
    rule = policy.cold_start
    if rule is None:
        return {}
    cold = [position for position, c in enumerate(candidates) if is_cold(c.view, rule, situation.now_s)]
    mean = warm_mean_bs((c.view for c in candidates), rule, situation.now_s) if cold else None
    if mean is None:
        return {}
    cap = max(1.0, rule.bs_cap_share * mean)
    return {
        position: f"cold start: BS {bs} is above {cap:.4g}"
        for position in cold
        if (bs := candidates[position].view.bs + 1) > cap
    }
