"""vLLM's load balancing between data-parallel engines: request counts, and no word about prefixes."""

from collections.abc import Sequence
from random import Random

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the requests at each candidate, plus a charge for a queue in front of a filling KV cache."""
    clients = VLLM.param(policy, "clients")
    queue_weight = VLLM.param(policy, "queue_weight")
    kv_free_share = VLLM.param(policy, "kv_free_share")
    scores = []
    for candidate in candidates:
        view = candidate.view
        pressure = max(0.0, (view.kv_use or 0.0) - kv_free_share)
        scores.append(max(clients * view.own_requests, view.bs) + view.waiting * queue_weight * pressure)
    return scores


def score_v1(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return ``4 * waiting + running`` per candidate."""
    weight = VLLM_V1.param(policy, "waiting_weight")
    return [weight * c.view.waiting + c.view.running for c in candidates]


VLLM = ScorerSpec(
    name="vllm",
    score=score,
    meaning="requests there, plus waiting * 6 * (KV use above one half)",
    source="vLLM, DPLBAsyncMPClient in vllm/v1/engine/core_client.py",
    defaults={"clients": 1.0, "queue_weight": 6.0, "kv_free_share": 0.5},
)

VLLM_V1 = ScorerSpec(
    name="vllm_v1",
    score=score_v1,
    meaning="4 * waiting + running requests",
    source="vLLM until 2025, DPLBAsyncMPClient in vllm/v1/engine/core_client.py",
    defaults={"waiting_weight": 4.0},
)
