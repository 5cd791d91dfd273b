"""What other policies would have chosen for a request that was decided: the same facts, the same ``decide()``.

A sample holds what each instance would have cost this request (hit, new, queued, BS) and, of workers that say so, what
else was known of it (running, waiting, KV use, ...). Only policies that read nothing else can be asked; those that need
hardware, the load of a while or chance cannot, and are not guessed.
"""

from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from router.core.candidate import Candidate
from router.core.decide import decide
from router.core.decision import Decision
from router.core.errors import ScorerFault
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.snapshot import CandidateSample, DecisionSample

BY_COST = frozenset(
    {
        "multiplicative",
        "multiplicative_raw",
        "marginal_delay",
        "least_pending_prefill",
        "least_request",
        "linear",
        "sglang",
        "aibrix",
    }
)
"""Scorers that read only what the request would cost."""
BY_LOAD = frozenset({"vllm", "vllm_v1", "dynamo", "llm_d", "preble", "round_robin"})
"""Scorers that also read :class:`router.snapshot.CandidateLoad`."""
ALTERNATIVES = (
    Policy(name="P-token × BS", scorer="multiplicative"),
    Policy(name="P-token alone", scorer="least_pending_prefill"),
    Policy(name="BS alone", scorer="least_request"),
    Policy(name="marginal delay", scorer="marginal_delay"),
    Policy(name="weighted sum, L = .7", scorer="linear"),
    Policy(name="new × BS without queue", scorer="multiplicative_raw"),
    Policy(name="vLLM", scorer="vllm"),
    Policy(name="SGLang", scorer="sglang"),
    Policy(name="Dynamo", scorer="dynamo"),
    Policy(name="llm-d", scorer="llm_d"),
    Policy(name="Preble", scorer="preble"),
    Policy(name="AIBrix", scorer="aibrix"),
    Policy(name="round robin", scorer="round_robin"),
)


class Alternative(msgspec.Struct, frozen=True):
    """What one policy would have chosen; ``agrees`` with what was chosen."""

    policy: Policy
    chosen: str | None
    agrees: bool
    candidate: Candidate | None
    """The chosen one's factors."""


def is_answerable(policy: Policy, sample: DecisionSample | None = None) -> bool:
    """Return whether a sample holds everything that a policy reads; without one, whether any sample can."""
    terms = (policy.load_adaptive, policy.cold_start, policy.hotspot, policy.spot)
    if policy.normalize_hardware or any(terms):
        return False
    if policy.scorer in BY_LOAD:
        return sample is None or all(candidate.load is not None for candidate in racing(sample))
    return policy.scorer in BY_COST


def racing(sample: DecisionSample) -> list[CandidateSample]:
    """Return the candidates that were not filtered out."""
    return [candidate for candidate in sample.candidates if candidate.filtered is None]


def decide_again(sample: DecisionSample, policy: Policy) -> Decision:
    """Decide a sampled request under another policy, among the candidates that were not filtered out.

    Ties that were broken by what the sample does not hold go to the instance that was chosen.

    :raises ScorerFault: when the policy cannot score these candidates.
    """
    candidates = racing(sample)
    request = Request(
        sample.request_id,
        sample.model,
        sample.prompt_tokens,
        tokens_per_block=1.0,
        preferred=next((slot for slot, one in enumerate(candidates) if one.instance == sample.chosen), None),
    )
    views = [_view(slot, candidate) for slot, candidate in enumerate(candidates)]
    return decide(request, views, [candidate.hit_tokens for candidate in candidates], policy, Random(0))


def alternatives(sample: DecisionSample, policies: Sequence[Policy] = ()) -> Iterator[Alternative]:
    """Return what other policies would have chosen: those given, and each of ``ALTERNATIVES``."""
    for policy in (*policies, *ALTERNATIVES):
        if not is_answerable(policy, sample):
            continue
        try:
            chosen = decide_again(sample, policy).chosen
        except ScorerFault:
            continue
        name = None if chosen is None else chosen.view.name
        yield Alternative(policy, name, name == sample.chosen, chosen)


def _view(slot: int, candidate: CandidateSample) -> InstanceView:
    """Return the instance as it was seen; KV blocks of one token, because hits are in whole blocks already."""
    view = InstanceView(
        slot=slot,
        name=candidate.instance,
        bs=candidate.bs - 1,
        queued_prefill_tokens=candidate.queued_prefill_tokens,
        kv_block_tokens=1,
    )
    load = candidate.load
    if load is None:
        return view
    return msgspec.structs.replace(
        view,
        running=load.running,
        waiting=load.waiting,
        own_requests=load.own_requests,
        active_kv_tokens=load.active_kv_tokens,
        kv_use=load.kv_use,
        windowed_prefill_tokens=load.windowed_prefill_tokens,
        last_chosen=load.last_chosen,
    )
