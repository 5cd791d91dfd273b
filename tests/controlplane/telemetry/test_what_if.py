"""Asking other policies about a decision that was made."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controlplane.policies.presets import preset_policies
from controlplane.telemetry.unknown_inputs import BY_CHANCE, BY_COST, BY_HARDWARE, BY_LOAD, unknown_input
from controlplane.telemetry.what_if import ALTERNATIVES, alternatives, decide_again
from router.core.balance import Balance
from router.core.decide import decide
from router.core.decision import Decision
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.instance import InstanceState, InstanceView
from router.core.load import fleet_load, lowered
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers import SCORERS
from router.core.situation import CALM, HotClass, Situation
from router.core.terms import AboveCap, ColdStart, EqualizeTtft, HotspotRule, LoadAdaptive, SpotRule
from router.proxy.decision_sample import decision_sample
from router.proxy.recent_decisions import RecentDecision
from router.snapshot import CandidateLoad, CandidateSample, DecisionSample
from tests.fakes.snapshots import FakeWorker


def some_decision(seed: int) -> DecisionSample:
    worker = FakeWorker(8, 80.0, seed=seed)
    snapshots = [worker.step() for _ in range(20)]
    sample = snapshots[-1].last_decision
    assert sample is not None
    return sample


def again(sample: DecisionSample, policy: Policy) -> Decision:
    answer = decide_again(sample, policy)
    assert answer.decision is not None, answer.unknown
    return answer.decision


@given(st.integers(0, 200))
def test_the_same_policy_decides_the_same_again(seed: int) -> None:
    sample = some_decision(seed)
    decision = again(sample, Policy())
    assert decision.chosen is not None
    assert decision.chosen.view.name == sample.chosen
    winner = next(c for c in sample.candidates if c.instance == sample.chosen)
    assert decision.score == winner.score


def test_every_candidate_has_the_factors_of_the_sample() -> None:
    sample = some_decision(3)
    by_name = {c.instance: c for c in sample.candidates}
    for candidate in again(sample, Policy()).candidates:
        told = by_name[candidate.view.name]
        factors = (candidate.hit_tokens, candidate.new_tokens, candidate.p_token, candidate.bs)
        assert factors == (told.hit_tokens, told.new_tokens, told.p_token, told.bs)


def candidate(name: str, queued: int, new: int, bs: int, filtered: str | None = None) -> CandidateSample:
    return CandidateSample(
        instance=name,
        hit_tokens=1_000 - new,
        new_tokens=new,
        queued_prefill_tokens=queued,
        p_token=queued + new,
        bs=bs,
        score=None if filtered else float((queued + new) * bs),
        filtered=filtered,
    )


def test_policies_that_weigh_otherwise_choose_otherwise() -> None:
    sample = replace(
        some_decision(1),
        prompt_tokens=1_000,
        chosen="balanced",
        candidates=(
            candidate("balanced", 0, 300, 3),
            candidate("cached", 0, 100, 12),
            candidate("idle", 0, 1_000, 1),
            candidate("draining", 0, 10, 1, filtered="state is draining"),
        ),
    )
    found = list(alternatives(sample))
    chosen = {one.policy.name: one.chosen for one in found if not one.unknown}
    assert chosen["P-token × BS"] == "balanced"
    assert chosen["P-token alone"] == "cached"
    assert chosen["BS alone"] == "idle"
    assert len(chosen) == sum(policy.scorer in BY_COST for policy in ALTERNATIVES)
    assert [one.agrees for one in alternatives(sample)][:3] == [True, False, False]


def test_when_nobody_was_left_nobody_would_have_been_chosen() -> None:
    out = (candidate("a", 0, 10, 1, filtered="state is draining"),)
    sample = replace(some_decision(1), chosen=None, candidates=out)
    assert {one.chosen for one in alternatives(sample)} == {None}
    assert not any(one.unknown for one in alternatives(sample))


def test_rules_that_read_the_load_are_asked_where_it_was_told() -> None:
    told = replace(
        some_decision(1),
        prompt_tokens=1_000,
        chosen="idle",
        candidates=(
            replace(candidate("idle", 0, 1_000, 1), load=load(waiting=0, last_chosen=9)),
            replace(candidate("cached", 0, 10, 4), load=load(waiting=3, last_chosen=8)),
        ),
    )
    chosen = {one.policy.name: one.chosen for one in alternatives(told, [Policy(name="own", scorer="vllm_v1")])}
    assert chosen["vLLM"] == "idle"
    assert chosen["round robin"] == "cached"
    assert chosen["Dynamo"] == "cached"
    assert chosen["own"] == "idle"
    assert len(chosen) == len(ALTERNATIVES) + 1


def load(waiting: int, last_chosen: int) -> CandidateLoad:
    return CandidateLoad(
        running=1,
        waiting=waiting,
        own_requests=waiting,
        active_kv_tokens=100,
        kv_use=0.2,
        windowed_prefill_tokens=0,
        last_chosen=last_chosen,
    )


def test_of_an_old_worker_it_is_said_what_it_did_not_tell() -> None:
    sample = some_decision(1)
    for policy, word in (
        (Policy(scorer="vllm"), "load"),
        (Policy(normalize_hardware=True), "terms"),
        (Policy(cold_start=ColdStart()), "terms"),
        (Policy(hotspot=HotspotRule()), "on watch"),
    ):
        assert word in (unknown_input(policy, sample) or "")
    assert unknown_input(Policy(), sample) is None


def test_every_scorer_says_what_it_reads() -> None:
    kinds = [BY_COST, BY_LOAD, BY_HARDWARE, BY_CHANCE]
    assert sum(map(len, kinds)) == len(SCORERS)
    assert frozenset().union(*kinds) == SCORERS.keys()


# -- decisions of the router's own, told and asked again --

KINDS = [None, *(HARDWARE_PROFILES[name] for name in sorted(HARDWARE_PROFILES))]
POLICIES = [
    *preset_policies(),
    *ALTERNATIVES,
    *(Policy(name=f"by {name}", scorer=name) for name in SCORERS),
    Policy(name="cold", cold_start=ColdStart(bs_floor_share=0.5)),
    Policy(name="spot", spot=SpotRule()),
    Policy(name="no spot", spot=SpotRule(refuse=True), hotspot=HotspotRule()),
    Policy(name="capped", p_token_cap=4000),
    Policy(name="shedding", p_token_cap=4000, above_cap=AboveCap.SHED),
    Policy(name="seconds", normalize_hardware=True, observed_hardware=True, load_adaptive=LoadAdaptive()),
    Policy(name="learning", normalize_hardware=True, equalize_ttft=EqualizeTtft()),
    Policy(name="early", load_adaptive=LoadAdaptive(threshold=0.1, hysteresis=0.05)),
    Policy(name="other rule", hotspot=HotspotRule(class_tokens=64)),
]
NOW_S = 1_000.0


@st.composite
def fleets(draw: st.DrawFn) -> list[InstanceView]:
    has_hardware = draw(st.booleans())
    return [
        InstanceView(
            slot=slot,
            name=f"gpu-{slot}",
            state=draw(st.sampled_from([InstanceState.READY] * 5 + [InstanceState.WARMING, InstanceState.DRAINING])),
            bs=(running := draw(st.integers(0, 60))) + (waiting := draw(st.integers(0, 5))),
            running=running,
            waiting=waiting,
            own_requests=draw(st.integers(0, running)),
            queued_prefill_tokens=draw(st.integers(0, 6_000)),
            active_kv_tokens=draw(st.integers(0, 50_000)),
            kv_use=draw(st.none() | st.floats(0, 1)),
            hardware=draw(st.sampled_from(KINDS[1:])) if has_hardware else None,
            observed=draw(st.sampled_from(KINDS)) if has_hardware else None,
            last_chosen=slot + 1,
            windowed_prefill_tokens=draw(st.integers(0, 9_000)),
            ejected=draw(st.integers(0, 9)) == 0,
            spot=draw(st.booleans()),
            cold_since_s=draw(st.none() | st.floats(NOW_S - 400, NOW_S)),
            warmth=draw(st.floats(0, 1)),
        )
        for slot in range(draw(st.integers(1, 6)))
    ]


def situation_of(policy: Policy, hot: HotClass | None, balance: Balance | None = None) -> Situation:
    """Return what the fleet tells a policy that decides."""
    hot = hot if policy.hotspot is not None else None
    return CALM if hot is None and policy.plain else Situation(NOW_S, hot, balance)


@given(fleets(), st.sampled_from(POLICIES), st.integers(0, 2**32), st.data())
def test_what_is_answered_is_what_the_router_would_have_chosen(
    views: list[InstanceView], decider: Policy, seed: int, data: st.DataObject
) -> None:
    hits = [data.draw(st.integers(0, 99)) for _ in views]
    request = Request("r", "m", 1_600, preferred=data.draw(st.none() | st.integers(0, len(views) - 1)))
    watching = data.draw(st.booleans())
    holders = data.draw(st.frozensets(st.integers(0, 5)))
    hot = HotClass("3f2a", holders) if watching and data.draw(st.booleans()) else None
    try:
        made = decide(request, views, hits, decider, Random(seed), situation_of(decider, hot))
    except Exception:  # a policy that cannot score this fleet decides nothing that could be asked about
        return
    recent = RecentDecision(NOW_S, made, watching)
    sample = msgspec.json.decode(msgspec.json.encode(decision_sample(recent, 5.0)), type=DecisionSample)
    for policy in POLICIES:
        answer = decide_again(sample, policy)
        if answer.unknown:
            assert answer.decision is None
            continue
        rule = policy.load_adaptive
        high = rule is not None and fleet_load(views, rule.max_batch) > rule.threshold
        asked = lowered(policy) if high else policy
        direct = decide(request, views, hits, asked, Random(0), situation_of(policy, hot))
        assert answer.decision is not None
        name = None if answer.decision.chosen is None else answer.decision.chosen.view.name
        equals = {
            c.view.name for c, score in zip(direct.candidates, direct.scores, strict=True) if score == direct.score
        }
        assert (name is None and not equals) or name in equals
        if direct.chosen is not None and len(equals) > 1 and SCORERS[policy.scorer].tie_break.name == "LEAST_RECENT":
            assert name == direct.chosen.view.name


def test_a_holder_that_was_out_for_something_else_is_out_for_its_class_under_another_policy() -> None:
    views = [InstanceView(slot=0, name="spot", spot=True), InstanceView(slot=1, name="own", bs=3)]
    rule, hot = HotspotRule(), HotClass("3f2a", frozenset({0}))
    without_spot = Policy(name="no spot", spot=SpotRule(refuse=True), hotspot=rule)
    made = decide(Request("r", "m", 1_600), views, [0, 0], without_spot, Random(0), Situation(NOW_S, hot))
    assert [reason for _, reason in made.rejected] == ["spot instance"]
    sample = decision_sample(RecentDecision(NOW_S, made, watching=True), 5.0)
    answer = again(sample, Policy(name="watchful", hotspot=rule))
    assert answer.chosen is not None
    assert answer.chosen.view.name == "own"


@given(fleets(), st.booleans())
def test_nothing_is_unknown_without_a_reason(views: list[InstanceView], watching: bool) -> None:
    """With profiles, one policy's own learning and classes on watch are all that a record cannot hold."""
    views = [replace(view, hardware=view.hardware or KINDS[1]) for view in views]
    made = decide(Request("r", "m", 1_600), views, [0] * len(views), Policy(), Random(0))
    sample = decision_sample(RecentDecision(NOW_S, made, watching), 5.0)
    reasons = {policy.name: decide_again(sample, policy).unknown for policy in POLICIES}
    for name, reason in reasons.items():
        policy = next(one for one in POLICIES if one.name == name)
        expected = [
            ("draws lots", SCORERS[policy.scorer].tie_break.name == "RANDOM" or policy.scorer == "random"),
            ("on watch", watching and policy.hotspot is not None),
            ("load was", policy.load_adaptive is not None),
            ("had learnt", name == "learning"),
        ]
        assert not reason or any(word in reason for word, possible in expected if possible), (name, reason)


@pytest.mark.parametrize("watching", [False, True])
def test_the_preset_that_protects_is_answered_while_nothing_is_on_watch(watching: bool) -> None:
    views = [InstanceView(slot=0, name="warm", bs=9), InstanceView(slot=1, name="cold", cold_since_s=NOW_S - 1)]
    made = decide(Request("r", "m", 1_600), views, [50, 0], Policy(), Random(0))
    sample = decision_sample(RecentDecision(NOW_S, made, watching), 5.0)
    protected = next(one for one in preset_policies() if one.name == "protected")
    answer = decide_again(sample, protected)
    assert made.chosen is not None
    assert made.chosen.view.name == "cold"
    if watching:
        assert "on watch" in answer.unknown
    else:
        assert answer.decision is not None
        assert answer.decision.chosen is not None
        assert answer.decision.chosen.view.name == "warm"


def test_of_the_policy_that_decided_the_record_is_the_answer() -> None:
    views = [InstanceView(slot=slot, name=f"gpu-{slot}") for slot in range(8)]
    lots = Policy(name="lots", revision=3, scorer="random")
    made = decide(Request("r", "m", 100), views, [0] * 8, lots, Random(5))
    sample = decision_sample(RecentDecision(NOW_S, made), 5.0)
    one, *_ = alternatives(sample, [lots])
    assert made.chosen is not None
    assert (one.chosen, one.agrees, one.unknown) == (made.chosen.view.name, True, "")


def test_load_within_the_hysteresis_is_answered_where_both_sides_agree() -> None:
    rule = LoadAdaptive(threshold=0.5, hysteresis=0.3, factor=0.0)
    policy = Policy(load_adaptive=rule)
    views = [
        InstanceView(slot=0, name="busy", bs=120, queued_prefill_tokens=100),
        InstanceView(slot=1, name="queue", bs=40, queued_prefill_tokens=5_000),
    ]
    assert 0.2 < fleet_load(views, rule.max_batch) <= 0.5
    made = decide(Request("r", "m", 1_600), views, [0, 0], Policy(), Random(0))
    told = decide_again(decision_sample(RecentDecision(NOW_S, made), 5.0), policy)
    assert (told.decision is None) == ("load was 31%" in told.unknown)
    alike = decide(Request("r", "m", 1_600), [replace(views[0], kv_use=0.4)], [0], Policy(), Random(0))
    assert decide_again(decision_sample(RecentDecision(NOW_S, alike), 5.0), policy).decision is not None
