"""Preble's E2 rule: exploit a cached prefix when it is the larger part of the prompt, else explore by cost."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.ranking import dense_ranks
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return each candidate's rank: by cached prefix, or by the prefill sent there in the last three minutes."""
    costs = [c.view.windowed_prefill_tokens for c in candidates]
    longest = max(c.hit_tokens for c in candidates)
    if longest < PREBLE.param(policy, "exploit_share") * request.prompt_tokens or longest == 0:
        return [cost + c.new_tokens for cost, c in zip(costs, candidates, strict=True)]
    return dense_ranks([(-c.hit_tokens, cost) for c, cost in zip(candidates, costs, strict=True)])


PREBLE = ScorerSpec(
    name="preble",
    score=score,
    meaning="rank by cached prefix when at least half is cached, else prefill tokens sent there in three minutes",
    source="Srivatsa et al., Preble, arXiv 2407.00023 (E2, window of 3 minutes)",
    defaults={"exploit_share": 0.5},
)
