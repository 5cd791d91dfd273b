"""AIBrix's prefix-cache routing: the longest match whose instance is not loaded beyond the usual."""

from collections.abc import Sequence
from random import Random
from statistics import fmean, pstdev

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.ranking import dense_ranks
from router.core.scorers.spec import ScorerSpec, Scores, TieBreak


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return each candidate's rank: by load when it is uneven, else by match among those within the usual load."""
    loads = [c.view.bs for c in candidates]
    if max(loads) - min(loads) > AIBRIX.param(policy, "imbalance"):
        return loads
    limit = fmean(loads) + AIBRIX.param(policy, "deviations") * pstdev(loads)
    return dense_ranks(
        [(load > limit, -candidate.hit_tokens, load) for candidate, load in zip(candidates, loads, strict=True)]
    )


AIBRIX = ScorerSpec(
    name="aibrix",
    score=score,
    meaning="rank: least loaded when load is uneven, else longest match with load up to mean + 1 sd",
    source="vllm-project/aibrix, pkg/plugins/gateway/algorithms/prefix_cache.go (8, 1)",
    tie_break=TieBreak.RANDOM,
    defaults={"imbalance": 8.0, "deviations": 1.0},
)
