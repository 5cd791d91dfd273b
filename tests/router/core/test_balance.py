"""The balance between kinds of hardware: what it does to a decision."""

from math import isclose
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.balance import Balance
from router.core.decide import decide
from router.core.decision import Decision
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation
from router.core.terms import EqualizeTtft, SpotRule
from tests.router.core.fleets import ANY_HARDWARE, fleet, fleets, request, requests

FAST = replace(ANY_HARDWARE, name="fast", t0_s=0.004, prefill_s_per_token=1 / 40_000)
LEARNT = Policy(normalize_hardware=True, equalize_ttft=EqualizeTtft())


def under(balance: Balance | None, views: list[InstanceView], tokens: int, policy: Policy = LEARNT) -> Decision:
    matched = {view.slot: 0 for view in views}
    return decide(request(tokens), views, matched, policy, Random(0), Situation(balance=balance))


def mixed() -> list[InstanceView]:
    """A slow instance that is idle, and a fast one, at which a request costs two and a half times as much."""
    slow, fast = fleet((0, 0), (0, 9))
    return [slow, replace(fast, hardware=FAST)]


def test_long_prefill_avoids_a_kind_that_answers_late_and_short_prefill_is_drawn_to_it() -> None:
    late = Balance(reference_s=0.05, exponents={"any": 2.0})
    assert under(None, mixed(), 8000).chosen.view.hardware.name == "any"
    assert under(late, mixed(), 8000).chosen.view.hardware.name == "fast"
    assert under(late, mixed(), 100).chosen.view.hardware.name == "any"


def test_the_factor_is_that_of_prefill_seconds_over_the_reference() -> None:
    plain, late = (under(Balance(0.05, exponents), mixed(), 2000).candidates[0] for exponents in ({}, {"any": 0.5}))
    prefill_s = 2000 / ANY_HARDWARE.prefill_tokens_per_s
    assert plain.factor == 1
    assert isclose(late.factor, (prefill_s / 0.05) ** 0.5)


def test_it_is_charged_on_top_of_a_spot_factor() -> None:
    views = [replace(view, spot=True) for view in mixed()]
    policy = replace(LEARNT, spot=SpotRule(factor=1.5))
    slow, fast = under(Balance(1.0, {"any": 1.0}), views, 2000, policy).candidates
    assert fast.factor == 1.5
    assert isclose(slow.factor, 1.5 * 2000 / ANY_HARDWARE.prefill_tokens_per_s)


def test_a_policy_without_the_term_is_not_corrected() -> None:
    plain = Policy(normalize_hardware=True, spot=SpotRule())
    assert [c.factor for c in under(Balance(1.0, {"any": 1.0}), mixed(), 2000, plain).candidates] == [1, 1]


@given(fleet=fleets(), request=requests, reference_s=st.floats(1e-3, 10))
def test_without_exponents_the_order_is_that_of_the_plain_score(
    fleet: tuple[list[InstanceView], dict[int, int]], request: Request, reference_s: float
) -> None:
    views, matched = fleet
    plain = decide(request, views, matched, Policy(), Random(0))
    situation = Situation(balance=Balance(reference_s, {"any": 0.0}))
    corrected = decide(request, views, matched, LEARNT, Random(0), situation)
    assert isclose(plain.scores[corrected.chosen_index], plain.score, rel_tol=1e-9)
