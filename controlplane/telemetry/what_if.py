"""What other policies would have chosen for a request that was decided: the same facts, the same ``decide()``.

Everything before the request stays as it was. What a record does not hold (:mod:`.unknown_inputs`) is not guessed at:
a policy that reads it is answered with what is not known.
"""

from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from controlplane.telemetry.unknown_inputs import racing, unknown_input
from router.core.candidate import Candidate
from router.core.decide import decide
from router.core.decision import Decision
from router.core.errors import CoreError
from router.core.instance import InstanceState, InstanceView
from router.core.load import fleet_load, lowered
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers import scorer_of
from router.core.scorers.spec import TieBreak
from router.core.situation import HotClass, Situation
from router.snapshot import CandidateSample, DecisionSample

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
    """The chosen one's factors; None where nobody was chosen, and for the policy that decided."""
    unknown: str = ""
    """Why there is no answer: which input is not known for this decision, or why the policy cannot score it."""


class Answer(msgspec.Struct, frozen=True):
    """A decision made again, or why it cannot be."""

    decision: Decision | None
    unknown: str = ""


def alternatives(sample: DecisionSample, policies: Sequence[Policy] = ()) -> Iterator[Alternative]:
    """Return what other policies would have chosen: those given, and each of ``ALTERNATIVES``."""
    for policy in (*policies, *ALTERNATIVES):
        if policy.label == sample.policy:
            yield Alternative(policy, sample.chosen, True, None)
            continue
        answer = decide_again(sample, policy)
        chosen = None if answer.decision is None else answer.decision.chosen
        name = None if chosen is None else chosen.view.name
        yield Alternative(policy, name, not answer.unknown and name == sample.chosen, chosen, answer.unknown)


def decide_again(sample: DecisionSample, policy: Policy) -> Answer:
    """Decide a sampled request under another policy, by what was known of the instances then.

    Ties that were broken by what the sample does not hold go to the instance that was chosen.
    """
    unknown = unknown_input(policy, sample)
    if unknown is not None:
        return Answer(None, unknown)
    candidates = sample.candidates if _has_terms(sample) else racing(sample)
    views = [_view(slot, one, sample) for slot, one in enumerate(candidates)]
    try:
        made = [_decide(sample, candidates, views, one) for one in _in_force(policy, views)]
    except CoreError as error:
        return Answer(None, str(error))
    names = {None if one.chosen is None else one.chosen.view.name for one in made}
    if len(names) > 1:
        return Answer(None, _between(policy, views))
    return Answer(None, lots) if (lots := _drawn(made[0], sample)) else Answer(made[0])


def _decide(
    sample: DecisionSample, candidates: Sequence[CandidateSample], views: Sequence[InstanceView], policy: Policy
) -> Decision:
    slots = {one.instance: slot for slot, one in enumerate(candidates)}
    barred = frozenset(slot for slot, one in enumerate(candidates) if one.terms is not None and one.terms.barred)
    request = Request(
        sample.request_id,
        sample.model,
        sample.prompt_tokens,
        tokens_per_block=1.0,
        preferred=slots.get(_tie_winner(sample, policy) or ""),
        tried=barred,
    )
    situation = Situation(now_s=0.0, hot=_hot_class(sample, policy, slots))
    return decide(request, views, [one.hit_tokens for one in candidates], policy, Random(0), situation)


def _tie_winner(sample: DecisionSample, policy: Policy) -> str | None:
    """Return who wins ties: the session's instance; where the rule reads what is not there, the chosen one."""
    remembered = _has_terms(sample) and scorer_of(policy).tie_break is TieBreak.LEAST_RECENT
    return sample.preferred if remembered else sample.chosen


def _drawn(decision: Decision, sample: DecisionSample) -> str:
    """Say who tied, where a policy drew lots among equals and the chosen instance was none of them."""
    tied = [
        c.view.name for c, score in zip(decision.candidates, decision.scores, strict=True) if score == decision.score
    ]
    if scorer_of(decision.policy).tie_break is not TieBreak.RANDOM or len(tied) < 2 or sample.chosen in tied:
        return ""
    return f"it draws lots among equals, and {len(tied)} instances were: {', '.join(tied)}"


def _in_force(policy: Policy, views: Sequence[InstanceView]) -> Sequence[Policy]:
    """Return what the load made of a policy; both where that depended on whether load had been high before."""
    rule = policy.load_adaptive
    if rule is None:
        return (policy,)
    load = fleet_load(views, rule.max_batch)
    if load > rule.threshold:
        return (lowered(policy),)
    return (policy,) if load <= rule.threshold - rule.hysteresis else (policy, lowered(policy))


def _between(policy: Policy, views: Sequence[InstanceView]) -> str:
    rule = policy.load_adaptive
    if rule is None:
        raise ValueError("only load makes two policies of one")
    load = fleet_load(views, rule.max_batch)
    low = rule.threshold - rule.hysteresis
    return (
        f"load was {load:.0%}, and between {low:.0%} and {rule.threshold:.0%} the choice depends on whether it had "
        "been high just before, which is not remembered"
    )


def _hot_class(sample: DecisionSample, policy: Policy, slots: dict[str, int]) -> HotClass | None:
    seen = sample.hotspot
    if policy.hotspot is None or seen is None or not seen.mitigated:
        return None
    return HotClass(seen.mitigated, frozenset(slots[name] for name in seen.holders if name in slots))


def _has_terms(sample: DecisionSample) -> bool:
    return all(one.terms is not None for one in sample.candidates)


def _view(slot: int, candidate: CandidateSample, sample: DecisionSample) -> InstanceView:
    """Return the instance as it was seen; KV blocks of one token, because hits are in whole blocks already."""
    view = InstanceView(
        slot=slot,
        name=candidate.instance,
        bs=candidate.bs - 1,
        queued_prefill_tokens=candidate.queued_prefill_tokens,
        kv_block_tokens=1,
    )
    load, terms = candidate.load, candidate.terms
    if load is not None:
        view = msgspec.structs.replace(view, **{name: getattr(load, name) for name in load.__struct_fields__})
    if terms is None:
        return view
    return msgspec.structs.replace(
        view,
        bs=terms.requests,
        state=InstanceState.READY if terms.takes_requests else InstanceState.MAINTENANCE,
        spot=terms.spot,
        cold_since_s=None if terms.cold_for_s is None else -terms.cold_for_s,
        warmth=terms.warmth,
        hardware=None if terms.hardware is None else sample.hardware[terms.hardware],
        observed=None if terms.observed is None else sample.hardware[terms.observed],
    )
