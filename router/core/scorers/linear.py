"""A weighted sum of cache misses and load, as production gateways use it: the rule whose weight must be tuned."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``L * (1 - hit ratio) + (1 - L) * BS / max BS`` per candidate."""
    weight = LINEAR.param(policy, "L")
    largest = max(c.bs for c in candidates)
    return [weight * (1 - c.hit_tokens / request.prompt_tokens) + (1 - weight) * c.bs / largest for c in candidates]


LINEAR = ScorerSpec(
    name="linear",
    score=score,
    meaning="L * share of the prompt that is not cached + (1 - L) * BS / largest BS",
    source="arXiv 2603.15202, section on linear combinations (production optimum .7 for ChatBot, .55 for API)",
    defaults={"L": 0.7},
)
