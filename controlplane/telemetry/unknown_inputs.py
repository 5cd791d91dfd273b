"""What a recorded decision does not hold of what a policy reads.

A record holds what each instance would have cost this request, and, of workers that say so, what other rules and the
optional terms read of it. What is not there is named, and nothing is put in its place.
"""

from collections.abc import Iterator, Sequence

from router.core.policy import Policy
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
BY_HARDWARE = frozenset({"llm_d_predict", "llm_d_predict_off"})
"""Scorers that read that, and the hardware profile."""
BY_CHANCE = frozenset({"random"})
NEVER_LIVE = 0
"""The revision of a policy that is only a proposal: it has learnt nothing about kinds of hardware."""


def racing(sample: DecisionSample) -> Sequence[CandidateSample]:
    """Return the candidates that any policy could have chosen; of old workers, those that its own left."""
    return [one for one in sample.candidates if (one.filtered is None if one.terms is None else not one.terms.barred)]


def unknown_input(policy: Policy, sample: DecisionSample) -> str | None:
    """Say which input of a policy is not known for a decision; None when all of them are.

    A clause that begins with a small letter. The decision's own policy is not asked: its choice is the record.
    """
    return next(_unknown(policy, sample), None)


def _unknown(policy: Policy, sample: DecisionSample) -> Iterator[str]:
    if policy.scorer in BY_CHANCE:
        yield "it draws lots, so that any instance could have been chosen"
    if policy.scorer in BY_LOAD | BY_HARDWARE and any(one.load is None for one in racing(sample)):
        yield "the router worker did not tell the load of the instances: it is of an older version"
    if _reads_terms(policy) and any(one.terms is None for one in sample.candidates):
        yield "the router worker did not tell what the policy's terms read: it is of an older version"
    elif reads_hardware(policy):
        yield from _unknown_hardware(policy, sample)
    if policy.hotspot is not None:
        yield from _unknown_mitigation(policy, sample)


def _reads_terms(policy: Policy) -> bool:
    terms = (policy.load_adaptive, policy.cold_start, policy.spot)
    return reads_hardware(policy) or any(term is not None for term in terms)


def reads_hardware(policy: Policy) -> bool:
    """Say whether a policy cannot do without the hardware profiles of the instances."""
    return policy.normalize_hardware or policy.scorer in BY_HARDWARE


def _unknown_hardware(policy: Policy, sample: DecisionSample) -> Iterator[str]:
    without = [one.instance for one in racing(sample) if one.terms is not None and one.terms.hardware is None]
    if without:
        yield f"{_named(without)} had no hardware profile; give one with the instance's registration"
    kinds = {one.terms.hardware for one in racing(sample) if one.terms is not None}
    if policy.equalize_ttft is not None and policy.revision != NEVER_LIVE and len(kinds) > 1:
        yield "what it had learnt by then about the kinds of hardware is only remembered of the policy that decided"


def _unknown_mitigation(policy: Policy, sample: DecisionSample) -> Iterator[str]:
    """While no class is on watch nobody is out for one; else only the deciding policy's own rule was asked."""
    if sample.watching is None:
        yield "the router worker did not tell whether a prefix class was on watch: it is of an older version"
    elif sample.watching and (sample.hotspot is None or sample.hotspot.rule != policy.hotspot):
        yield (
            "a prefix class was on watch for a hotspot, and whether this request was of one that this policy's rule "
            "would have kept from its holders is not remembered"
        )


def _named(instances: Sequence[str]) -> str:
    return ", ".join(instances[:3]) + (f" and {len(instances) - 3} more" if len(instances) > 3 else "")
