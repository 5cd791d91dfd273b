"""Asking other policies about a decision that was made."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controlplane.telemetry.what_if import ALTERNATIVES, BY_COST, alternatives, decide_again, is_answerable
from router.core.policy import Policy
from router.snapshot import CandidateLoad, CandidateSample, DecisionSample
from tests.fakes.snapshots import FakeWorker


def some_decision(seed: int) -> DecisionSample:
    worker = FakeWorker(8, 80.0, seed=seed)
    snapshots = [worker.step() for _ in range(20)]
    sample = snapshots[-1].last_decision
    assert sample is not None
    return sample


@given(st.integers(0, 200))
def test_the_same_policy_decides_the_same_again(seed: int) -> None:
    sample = some_decision(seed)
    decision = decide_again(sample, Policy())
    assert decision.chosen is not None
    assert decision.chosen.view.name == sample.chosen
    winner = next(c for c in sample.candidates if c.instance == sample.chosen)
    assert decision.score == winner.score


def test_every_candidate_has_the_factors_of_the_sample() -> None:
    sample = some_decision(3)
    by_name = {c.instance: c for c in sample.candidates}
    for candidate in decide_again(sample, Policy()).candidates:
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
    chosen = {one.policy.name: one.chosen for one in alternatives(sample)}
    assert chosen["P-token × BS"] == "balanced"
    assert chosen["P-token alone"] == "cached"
    assert chosen["BS alone"] == "idle"
    assert len(chosen) == sum(policy.scorer in BY_COST for policy in ALTERNATIVES)
    assert [one.agrees for one in alternatives(sample)][:3] == [True, False, False]


def test_when_nobody_was_left_nobody_would_have_been_chosen() -> None:
    out = (candidate("a", 0, 10, 1, filtered="state is draining"),)
    sample = replace(some_decision(1), chosen=None, candidates=out)
    assert {one.chosen for one in alternatives(sample)} == {None}


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


def test_policies_that_need_more_than_a_sample_are_not_asked() -> None:
    assert all(map(is_answerable, ALTERNATIVES))
    assert not is_answerable(Policy(scorer="vllm"), some_decision(1)), "the fake worker says nothing of loads"
    assert not is_answerable(Policy(scorer="random"))
    assert not is_answerable(Policy(normalize_hardware=True))
