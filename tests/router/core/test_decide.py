"""Deciding: what holds for every scorer, and what the product means."""

from math import inf, isfinite, nan
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.decide import decide
from router.core.errors import InvalidPolicy, ScorerFault
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers import SCORERS
from router.core.scorers.spec import ScorerSpec, TieBreak
from tests.router.core.fleets import choose, exponents, fleet, fleets, request, requests

ANY_SCORER = st.sampled_from(sorted(SCORERS))

Fleet = tuple[list[InstanceView], dict[int, int]]


def use_scorer(monkeypatch: pytest.MonkeyPatch, **kwargs: object) -> Policy:
    """Register a scorer of the test's own under the name ``own``."""
    spec = ScorerSpec(name="own", meaning="", source="", **kwargs)
    monkeypatch.setattr("router.core.scorers.SCORERS", {"own": spec})
    return Policy(scorer="own")


# -- every scorer ------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(scorer=ANY_SCORER, fleet=fleets(), request=requests, seed=st.integers(0, 99))
def test_the_chosen_one_has_the_smallest_of_as_many_finite_scores_as_candidates(
    scorer: str, fleet: Fleet, request: Request, seed: int
) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(scorer=scorer), Random(seed))
    assert [c.view for c in decision.candidates] == views
    assert len(decision.scores) == len(views)
    assert all(isfinite(score) for score in decision.scores)
    assert decision.score == min(decision.scores)
    assert decision.chosen is decision.candidates[decision.chosen_index]


@settings(max_examples=300)
@given(scorer=ANY_SCORER, fleet=fleets(all_ready=False), request=requests, seed=st.integers(0, 99))
def test_equal_arguments_give_equal_decisions_and_change_nothing(
    scorer: str, fleet: Fleet, request: Request, seed: int
) -> None:
    views, matched = fleet
    before = list(views), dict(matched)
    first, second = (decide(request, views, matched, Policy(scorer=scorer), Random(seed)) for _ in range(2))
    assert first == second
    assert (views, matched) == before


@given(fleet=fleets(), request=requests, a=exponents, b=exponents, data=st.data())
def test_the_order_of_the_fleet_does_not_matter(
    fleet: Fleet, request: Request, a: float, b: float, data: st.DataObject
) -> None:
    views, matched = fleet
    shuffled = data.draw(st.permutations(views))
    policy = Policy(a=a, b=b)
    one, other = (decide(request, order, matched, policy, Random(0)) for order in (views, shuffled))
    assert one.chosen == other.chosen
    assert one.score == other.score


# -- the product -------------------------------------------------------------------------------------------------------


@given(fleet=fleets(), request=requests)
def test_the_plain_score_is_p_token_times_bs_in_whole_numbers(fleet: Fleet, request: Request) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(), Random(0))
    for candidate, score in zip(decision.candidates, decision.scores, strict=True):
        assert score == (candidate.view.queued_prefill_tokens + candidate.new_tokens) * (candidate.view.bs + 1)
        assert isinstance(score, int)


@given(
    fleet=fleets(),
    request=requests,
    a=exponents,
    b=exponents,
    more=st.sampled_from(["queued_prefill_tokens", "bs"]),
    by=st.integers(1, 1000),
)
def test_more_load_never_lowers_a_score(fleet: Fleet, request: Request, a: float, b: float, more: str, by: int) -> None:
    views, matched = fleet
    policy = Policy(a=a, b=b)
    before = decide(request, views, matched, policy, Random(0)).scores[0]
    heavier = [replace(views[0], **{more: getattr(views[0], more) + by}), *views[1:]]
    after = decide(request, heavier, matched, policy, Random(0)).scores[0]
    assert after >= before
    if a == b == 1:
        assert after > before


@given(fleet=fleets(), request=requests, a=exponents, b=exponents, more=st.integers(1, 500))
def test_a_longer_match_never_raises_a_score(fleet: Fleet, request: Request, a: float, b: float, more: int) -> None:
    views, matched = fleet
    slot = views[0].slot
    policy = Policy(a=a, b=b)
    before = decide(request, views, matched, policy, Random(0)).scores[0]
    after = decide(request, views, matched | {slot: matched[slot] + more}, policy, Random(0)).scores[0]
    assert after <= before


@given(fleet=fleets(), request=requests)
def test_exponents_1_0_choose_the_least_pending_prefill(fleet: Fleet, request: Request) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(a=1, b=0), Random(0))
    assert decision.chosen.p_token == min(c.p_token for c in decision.candidates)


@given(fleet=fleets(), request=requests)
def test_exponents_0_1_choose_the_least_batch(fleet: Fleet, request: Request) -> None:
    views, matched = fleet
    decision = decide(request, views, matched, Policy(a=0, b=1), Random(0))
    assert decision.chosen.bs == min(c.bs for c in decision.candidates)


def test_exponents_weigh_prefill_against_batch() -> None:
    views = fleet((9000, 0), (0, 9))
    assert choose(views, Policy(a=1, b=2)).chosen.view.slot == 0
    assert choose(views, Policy(a=2, b=1)).chosen.view.slot == 1


def test_c_weighs_the_queued_part_alone() -> None:
    views = fleet((3000, 3))
    plain, queued_without_bs, same = (choose(views, Policy(c=c)).score for c in (None, 0.0, 1.0))
    assert plain == same == (1000 + 3000) * 4
    assert queued_without_bs == pytest.approx(1000 * 4 + 3000)


@given(fleet=fleets(), request=requests, a=st.floats(0.25, 2), b=st.floats(0.25, 2))
def test_on_equal_hardware_the_normalised_score_chooses_as_the_plain_one(
    fleet: Fleet, request: Request, a: float, b: float
) -> None:
    views, matched = fleet
    plain = decide(request, views, matched, Policy(a=a, b=b), Random(0))
    normalised = decide(request, views, matched, Policy(a=a, b=b, normalize_hardware=True), Random(0))
    assert plain.scores[normalised.chosen_index] == pytest.approx(plain.score, rel=1e-9)


def test_normalised_the_faster_instance_takes_more() -> None:
    slow, fast = fleet((4000, 4), (5000, 4))
    quick = replace(slow.hardware, name="quick", t0_s=0.004, prefill_s_per_token=1 / 40_000)
    views = [slow, replace(fast, hardware=quick)]
    assert choose(views).chosen.view.slot == 0
    assert choose(views, Policy(normalize_hardware=True)).chosen.view.slot == 1


def test_normalised_by_what_was_observed_where_the_policy_says_so_and_something_was() -> None:
    first, second = fleet((4000, 4), (5000, 4))
    quick = replace(first.hardware, name="observed-i1", t0_s=0.004, prefill_s_per_token=1 / 40_000)
    views = [first, replace(second, observed=quick)]
    assert choose(views, Policy(normalize_hardware=True)).chosen.view.slot == 0
    assert choose(views, Policy(normalize_hardware=True, observed_hardware=True)).chosen.view.slot == 1
    unknown = [first, second]
    assert choose(unknown, Policy(normalize_hardware=True, observed_hardware=True)).chosen.view.slot == 0


def test_normalised_without_a_profile_is_refused_by_name() -> None:
    views = [replace(v, hardware=None) for v in fleet((0, 0))]
    with pytest.raises(InvalidPolicy, match="i0 has no hardware profile"):
        choose(views, Policy(normalize_hardware=True))


# -- hits --------------------------------------------------------------------------------------------------------------


@given(fleet=fleets(), request=requests)
def test_hits_are_whole_blocks_and_at_least_one_token_is_new(fleet: Fleet, request: Request) -> None:
    views, matched = fleet
    for candidate in decide(request, views, matched, Policy(), Random(0)).candidates:
        assert candidate.hit_tokens % candidate.view.kv_block_tokens == 0
        assert 0 <= candidate.hit_tokens <= request.prompt_tokens - 1
        assert candidate.hit_tokens <= request.tokens_per_block * matched[candidate.view.slot]
        assert candidate.hit_tokens + candidate.new_tokens == request.prompt_tokens


@pytest.mark.parametrize(
    ("prompt_tokens", "matched", "hit"),
    [(64, 4, 48), (65, 4, 64), (65, 5, 64), (1, 1, 0), (17, 1, 16), (16, 1, 0), (1000, 0, 0), (1000, 3, 48)],
)
def test_a_fully_cached_prompt_still_prefills_its_last_block(prompt_tokens: int, matched: int, hit: int) -> None:
    decision = choose(fleet((0, 0)), hits={0: matched}, of=request(prompt_tokens))
    assert decision.chosen.hit_tokens == hit


def test_blocks_of_bytes_are_rounded_down_to_the_blocks_of_the_engine() -> None:
    decision = choose(fleet((0, 0)), hits={0: 7}, of=request(1000, tokens_per_block=10.0))
    assert decision.chosen.hit_tokens == 64


# -- ties --------------------------------------------------------------------------------------------------------------


@given(stamps=st.lists(st.integers(0, 1000), min_size=1, max_size=10, unique=True))
def test_idle_instances_take_turns(stamps: list[int]) -> None:
    views = [InstanceView(slot=i, name=f"i{i}", last_chosen=stamp) for i, stamp in enumerate(stamps)]
    assert choose(views).chosen.view.last_chosen == min(stamps)


def test_only_tied_instances_take_part_in_a_tie() -> None:
    views = [replace(v, last_chosen=9 - v.slot) for v in fleet((0, 0), (0, 0), (0, 5))]
    assert choose(views).chosen.view.slot == 1


def test_a_scorer_may_break_ties_by_order_or_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    views = [replace(v, last_chosen=9 - v.slot) for v in fleet(*[(0, 0)] * 4)]
    first = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [0.0] * len(cs), tie_break=TieBreak.FIRST)
    assert choose(views, first).chosen_index == 0
    chance = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [1.0, 0.0, 0.0, 0.0], tie_break=TieBreak.RANDOM)
    matched = dict.fromkeys(range(4), 0)
    chosen = {decide(request(), views, matched, chance, Random(seed)).chosen_index for seed in range(50)}
    assert chosen == {1, 2, 3}


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [nan, inf, -inf])
def test_a_score_that_is_not_finite_names_the_scorer_and_the_instance(
    monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    policy = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [1.0, wrong, 2.0])
    with pytest.raises(ScorerFault, match=f"scorer own gave instance i1 the score {wrong}"):
        choose(fleet((0, 0), (0, 0), (0, 0)), policy)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_scores_names_the_scorer(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    policy = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [1.0] * count)
    with pytest.raises(ScorerFault, match=f"scorer own returned {count} scores for 2 candidates"):
        choose(fleet((0, 0), (0, 0)), policy)


def test_infinities_that_cancel_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [inf, -inf])
    with pytest.raises(ScorerFault, match="i0 the score inf"):
        choose(fleet((0, 0), (0, 0)), policy)


def test_scores_that_cannot_be_added_up_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = use_scorer(monkeypatch, score=lambda r, cs, p, rng: [1.7e308, 1.7e308])
    with pytest.raises(ScorerFault, match="sum is not finite"):
        choose(fleet((0, 0), (0, 0)), policy)


def test_arithmetic_that_fails_names_the_scorer_and_the_policy() -> None:
    with pytest.raises(ScorerFault, match="scorer multiplicative under policy steep@3"):
        choose(fleet((9000, 9)), Policy(name="steep", revision=3, a=400.0))


def test_an_unknown_scorer_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidPolicy, match=r"no scorer named 'guess'.*multiplicative"):
        choose(fleet((0, 0)), Policy(scorer="guess"))


def test_an_empty_fleet_gives_a_decision_that_chose_nothing() -> None:
    decision = choose([])
    assert (decision.chosen, decision.score, decision.margin, decision.rows()) == (None, None, None, [])
