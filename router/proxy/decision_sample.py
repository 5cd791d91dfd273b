"""A decision as it is shown and stored: rendered from what is remembered of it, when somebody asks."""

from router.core.decision import Decision, ScoredRow
from router.core.filters import FILTERS
from router.core.hardware import HardwareProfile
from router.core.instance import ROUTABLE_STATES, InstanceView
from router.core.situation import CALM
from router.proxy.recent_decisions import RecentDecision
from router.snapshot import CandidateLoad, CandidateSample, CandidateTerms, DecisionSample, HotspotSample

_Profiles = dict[HardwareProfile, int]
"""Profiles of one decision and their places: most instances share one."""


def decision_sample(recent: RecentDecision, time_unix_s: float) -> DecisionSample:
    """Return a decision as it is shown and stored.

    :param time_unix_s: when it was made.
    """
    decision = recent.decision
    request, policy, chosen = decision.request, decision.policy, decision.chosen
    barred = barred_slots(decision)
    profiles: _Profiles = {}
    candidates = tuple(_candidate(row, recent.at_s, barred, profiles) for row in decision.rows())
    return DecisionSample(
        request_id=request.id,
        time_unix_s=time_unix_s,
        model=request.model,
        workload=request.workload,
        policy=policy.label,
        scorer=policy.scorer,
        a=policy.a,
        b=policy.b,
        prompt_tokens=request.prompt_tokens,
        estimated=request.estimated,
        chosen=None if chosen is None else chosen.view.name,
        candidates=candidates,
        c=policy.c,
        preferred=_preferred(decision),
        hardware=tuple(profiles),
        watching=recent.watching,
        hotspot=_hotspot(decision),
    )


def barred_slots(decision: Decision) -> frozenset[int]:
    """Return the slots of the instances that no policy could have chosen for the request."""
    out = [candidate for candidate, _ in decision.rejected]
    return frozenset(
        out[position].view.slot
        for find_rejected in FILTERS
        for position in find_rejected(decision.request, out, decision.policy, CALM)
    )


def _candidate(row: ScoredRow, at_s: float, barred: frozenset[int], profiles: _Profiles) -> CandidateSample:
    candidate = row.candidate
    return CandidateSample(
        instance=candidate.view.name,
        hit_tokens=candidate.hit_tokens,
        new_tokens=candidate.new_tokens,
        queued_prefill_tokens=candidate.view.queued_prefill_tokens,
        p_token=candidate.p_token,
        bs=candidate.bs,
        score=row.score,
        filtered=row.filtered,
        p_offset=candidate.p_offset,
        factor=candidate.factor,
        exact=candidate.exact,
        load=_load(candidate.view),
        terms=_terms(candidate.view, at_s, candidate.view.slot in barred, profiles),
    )


def _load(view: InstanceView) -> CandidateLoad:
    return CandidateLoad(
        running=view.running,
        waiting=view.waiting,
        own_requests=view.own_requests,
        active_kv_tokens=view.active_kv_tokens,
        kv_use=view.kv_use,
        windowed_prefill_tokens=view.windowed_prefill_tokens,
        last_chosen=view.last_chosen,
    )


def _terms(view: InstanceView, at_s: float, barred: bool, profiles: _Profiles) -> CandidateTerms:
    return CandidateTerms(
        requests=view.bs,
        takes_requests=view.state in ROUTABLE_STATES,
        barred=barred,
        spot=view.spot,
        cold_for_s=None if view.cold_since_s is None else at_s - view.cold_since_s,
        warmth=view.warmth,
        hardware=_place(view.hardware, profiles),
        observed=_place(view.observed, profiles),
    )


def _place(profile: HardwareProfile | None, profiles: _Profiles) -> int | None:
    return None if profile is None else profiles.setdefault(profile, len(profiles))


def _preferred(decision: Decision) -> str | None:
    slot = decision.request.preferred
    known = (*decision.candidates, *(candidate for candidate, _ in decision.rejected))
    return next((one.view.name for one in known if one.view.slot == slot), None)


def _hotspot(decision: Decision) -> HotspotSample | None:
    rule = decision.policy.hotspot
    if rule is None:
        return None
    hot = decision.hot
    if hot is None:
        return HotspotSample(rule=rule)
    everyone = (*decision.candidates, *(candidate for candidate, _ in decision.rejected))
    holders = tuple(one.view.name for one in everyone if one.view.slot in hot.holders)
    return HotspotSample(rule=rule, mitigated=hot.name, holders=holders)
