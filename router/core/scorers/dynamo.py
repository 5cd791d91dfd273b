"""NVIDIA Dynamo's KV router: blocks to prefill plus blocks that decode, in one sum."""

from collections.abc import Sequence
from math import log
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores, TieBreak


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``overlap_weight * prefill blocks + decode blocks`` per candidate, perturbed at a temperature above 0.

    Prefill blocks are those queued and those of this prompt that are not cached; decode blocks are those that
    requests in flight hold, with this one. At a temperature T the smallest perturbed score is a draw from the softmax
    of the scores, scaled to 0..1 and divided by T.
    """
    weight = DYNAMO.param(policy, "overlap_weight")
    costs = [
        (weight * c.p_token + c.view.active_kv_tokens + request.prompt_tokens) / c.view.kv_block_tokens
        for c in candidates
    ]
    temperature = DYNAMO.param(policy, "temperature")
    if temperature <= 0:
        return costs
    low, spread = min(costs), max(costs) - min(costs) or 1.0
    return [(cost - low) / spread / temperature + _gumbel(rng) for cost in costs]


def _gumbel(rng: Random) -> float:
    """Draw the noise whose smallest sum is a softmax draw (the Gumbel trick, with the sign of a minimum)."""
    return log(-log(1.0 - rng.random() * (1 - 1e-12) - 1e-13))


DYNAMO = ScorerSpec(
    name="dynamo",
    score=score,
    meaning="KV blocks to prefill (queued ones included) plus KV blocks in use",
    source="ai-dynamo/dynamo, lib/llm/src/kv_router/scheduler.rs (overlap weight 1, temperature 0)",
    tie_break=TieBreak.RANDOM,
    defaults={"overlap_weight": 1.0, "temperature": 0.0},
)
