"""The optional terms of a policy: off unless set, in range, and what they do to a decision."""

from math import inf, nan

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.decision import Decision
from router.core.errors import InvalidPolicy
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.scorers import check_policy
from router.core.situation import HotClass, Situation
from router.core.term_limits import RANGES
from router.core.terms import AboveCap, ColdStart, EqualizeTtft, HotspotRule, LoadAdaptive, SpotRule
from tests.router.core.fleets import choose, fleet, fleets

TERMS = {
    "load_adaptive": LoadAdaptive,
    "cold_start": ColdStart,
    "hotspot": HotspotRule,
    "equalize_ttft": EqualizeTtft,
    "spot": SpotRule,
}
ALL_ON = Policy(p_token_cap=10_000, normalize_hardware=True, **{name: term() for name, term in TERMS.items()})


def reasons(decision: Decision) -> dict[str, str]:
    return {candidate.view.name: reason for candidate, reason in decision.rejected}


def cold(view: InstanceView, since_s: float = 0.0, warmth: float = 0.0) -> InstanceView:
    return replace(view, cold_since_s=since_s, warmth=warmth)


# -- fields --


def test_every_term_is_off_by_default_and_legal_when_on() -> None:
    assert all(getattr(Policy(), name) is None for name in (*TERMS, "p_token_cap"))
    assert Policy().plain
    check_policy(ALL_ON)
    assert msgspec.json.decode(msgspec.json.encode(ALL_ON), type=Policy) == ALL_ON


def test_every_number_of_every_term_has_a_range() -> None:
    numbers = {
        f"{name}.{field.name}"
        for name, term in TERMS.items()
        for field in msgspec.structs.fields(term)
        if field.type in (int, float)
    }
    assert numbers | {"p_token_cap"} == set(RANGES)


@pytest.mark.parametrize("path", RANGES)
@pytest.mark.parametrize("value", [nan, inf, -inf, -1.0])
def test_a_number_out_of_range_is_refused_by_the_name_of_its_field(path: str, value: float) -> None:
    name, _, field = path.partition(".")
    policy = Policy(**{name: TERMS[name](**{field: value}) if field else value})
    with pytest.raises(InvalidPolicy, match=f"^{path} is {value}, but must be"):
        check_policy(policy)


@pytest.mark.parametrize(
    ("name", "term"), [("load_adaptive", LoadAdaptive()), ("equalize_ttft", EqualizeTtft()), ("spot", SpotRule())]
)
def test_terms_of_the_product_are_refused_for_other_scorers(name: str, term: object) -> None:
    with pytest.raises(InvalidPolicy, match=f"^{name}"):
        check_policy(Policy(scorer="vllm", **{name: term}))


def test_observed_hardware_needs_normalised_scores() -> None:
    for policy in (
        Policy(observed_hardware=True),
        Policy(scorer="vllm", normalize_hardware=True, observed_hardware=True),
    ):
        with pytest.raises(InvalidPolicy, match=r"^observed_hardware .* needs normalize_hardware"):
            check_policy(policy)


def test_equal_first_tokens_need_normalised_scores() -> None:
    with pytest.raises(InvalidPolicy, match=r"^equalize_ttft .* needs normalize_hardware"):
        check_policy(Policy(equalize_ttft=EqualizeTtft()))


def test_an_unknown_field_of_a_term_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"cold_start": {"length_s": 3}}, type=Policy)


# -- P-token cap --


def test_instances_above_the_cap_are_out() -> None:
    decision = choose(fleet((5000, 0), (0, 50)), Policy(p_token_cap=2000))
    assert decision.chosen.view.name == "i1"
    assert reasons(decision) == {"i0": "P-token 6000 is above the cap 2000"}


def test_when_all_are_above_the_cap_the_least_bad_one_is_left() -> None:
    decision = choose(fleet((5000, 0), (4000, 50)), Policy(p_token_cap=2000))
    assert decision.chosen.view.name == "i1"
    assert not decision.shed


def test_or_the_request_is_shed() -> None:
    policy = Policy(p_token_cap=2000, above_cap=AboveCap.SHED)
    decision = choose(fleet((5000, 0), (4000, 50)), policy)
    assert decision.chosen is None
    assert decision.shed


def test_without_an_instance_in_rotation_nothing_is_shed() -> None:
    policy = Policy(p_token_cap=2000, above_cap=AboveCap.SHED)
    assert not choose([replace(v, ejected=True) for v in fleet((5000, 0))], policy).shed


# -- spot instances --


def test_a_spot_instance_must_be_better_by_its_factor() -> None:
    spot, other = fleet((0, 9), (0, 11))
    views = [replace(spot, spot=True), other]
    assert choose(views).chosen.view.name == "i0"
    decision = choose(views, Policy(spot=SpotRule()))
    assert decision.chosen.view.name == "i1"
    assert decision.scores == [1.25 * 1000 * 10, 1000 * 12]


def test_spot_instances_can_be_refused() -> None:
    spot, other = fleet((0, 0), (5000, 11))
    decision = choose([replace(spot, spot=True), other], Policy(spot=SpotRule(refuse=True)))
    assert decision.chosen.view.name == "i1"
    assert reasons(decision) == {"i0": "spot instance"}


# -- cold starts --


def decided(views: list[InstanceView], policy: Policy, now_s: float = 10.0, hot: HotClass | None = None) -> Decision:
    from random import Random

    from router.core.decide import decide
    from tests.router.core.fleets import request

    return decide(request(), views, {v.slot: 0 for v in views}, policy, Random(0), Situation(now_s=now_s, hot=hot))


COLD = Policy(cold_start=ColdStart())


def test_a_cold_instance_is_capped_at_half_the_mean_of_the_warm_ones() -> None:
    new, *warm = fleet((0, 5), (9000, 10), (9000, 14))
    assert decided([cold(new), *warm], COLD).chosen.view.name == "i0"
    decision = decided([cold(replace(new, bs=6)), *warm], COLD)
    assert reasons(decision) == {"i0": "cold start: BS 7 is above 6"}


def test_an_idle_cold_instance_is_always_let_in() -> None:
    new, warm = fleet((0, 0), (9000, 0))
    assert decided([cold(new), warm], COLD).chosen.view.name == "i0"


def test_without_a_warm_instance_nobody_is_capped() -> None:
    assert not decided([cold(v) for v in fleet((0, 0), (0, 90))], COLD).rejected


def test_a_cold_instance_is_charged_ten_tokens_more() -> None:
    new, warm = fleet((0, 3), (0, 20))
    decision = decided([cold(new), warm], COLD)
    assert [c.p_token for c in decision.candidates] == [1010, 1000]
    assert decision.scores == [1010 * 4, 1000 * 21]
    assert [c.new_tokens for c in decision.candidates] == [1000, 1000]


def test_bs_at_a_cold_instance_can_count_as_a_share_of_the_warm_mean() -> None:
    new, *warm = fleet((0, 2), (0, 10), (0, 14))
    policy = Policy(cold_start=ColdStart(bs_floor_share=0.5))
    decision = decided([cold(new), *warm], policy)
    assert [c.bs for c in decision.candidates] == [7, 11, 15]
    assert decision.scores == [1010 * 7, 1000 * 11, 1000 * 15]
    assert (
        decided([cold(replace(new, bs=9)), *warm], Policy(cold_start=ColdStart(bs_floor_share=0.5, bs_cap_share=2)))
        .candidates[0]
        .bs
        == 10
    )


@pytest.mark.parametrize(
    ("since_s", "warmth", "now_s"),
    [(0.0, 0.0, 300.0), (0.0, 1.0, 10.0), (None, 0.0, 10.0)],
    ids=["time", "warm", "never"],
)
def test_a_cold_start_ends(since_s: float | None, warmth: float, now_s: float) -> None:
    new, warm = fleet((0, 90), (0, 10))
    decision = decided([replace(new, cold_since_s=since_s, warmth=warmth), warm], COLD, now_s)
    assert not decision.rejected
    assert decision.candidates[0].p_offset == 0


# -- hotspots --


def test_the_holders_of_a_mitigated_class_are_out() -> None:
    hot = HotClass("3f2a", frozenset({0}))
    decision = decided(fleet((0, 0), (5000, 50)), Policy(hotspot=HotspotRule()), hot=hot)
    assert decision.chosen.view.name == "i1"
    assert reasons(decision) == {"i0": "hotspot mitigation for class 3f2a"}


def test_a_policy_without_the_rule_does_not_mitigate() -> None:
    hot = HotClass("3f2a", frozenset({0}))
    assert not decided(fleet((0, 0), (5000, 50)), Policy(), hot=hot).rejected


@given(fleet=fleets(), held=st.sets(st.integers(0, 30)), cold_slots=st.sets(st.integers(0, 30)), spot=st.booleans())
def test_no_term_but_shedding_and_refusing_ever_leaves_a_request_without_candidates(
    fleet: tuple[list[InstanceView], dict[int, int]], held: set[int], cold_slots: set[int], spot: bool
) -> None:
    views = [cold(v) if v.slot in cold_slots else replace(v, spot=spot) for v in fleet[0]]
    decision = decided(views, ALL_ON, hot=HotClass("3f2a", frozenset(held)))
    assert decision.chosen is not None
    assert len(decision.candidates) + len(decision.rejected) == len(views)
