"""llm-d's default scheduling profile: a weighted sum of prefix, queue and KV scores."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores, TieBreak


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the negative of llm-d's weighted sum, whose largest value wins."""
    prefix_weight, queue_weight, kv_weight = (
        LLM_D.param(policy, name) for name in ("prefix_weight", "queue_weight", "kv_weight")
    )
    longest = max(c.view.waiting for c in candidates)
    spread = longest - min(c.view.waiting for c in candidates)
    scores = []
    for candidate in candidates:
        view = candidate.view
        prefix = candidate.hit_tokens / request.prompt_tokens
        queue = (longest - view.waiting) / spread if spread else 1.0
        kv_free = 1 - (view.kv_use or 0.0)
        scores.append(-(prefix_weight * prefix + queue_weight * queue + kv_weight * kv_free))
    return scores


LLM_D = ScorerSpec(
    name="llm_d",
    score=score,
    meaning="the negative of 3 * cached share + 2 * relative queue + 2 * free KV share",
    source="llm-d-inference-scheduler, default plug-ins prefix-cache, queue and kv-cache-utilization scorers (3, 2, 2)",
    tie_break=TieBreak.RANDOM,
    defaults={"prefix_weight": 3.0, "queue_weight": 2.0, "kv_weight": 2.0},
)
