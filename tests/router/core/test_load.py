"""High load: when it begins and ends, and what it lowers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.instance import InstanceState
from router.core.load import fleet_load, is_high, lowered
from router.core.policy import Policy
from router.core.terms import LoadAdaptive, LoweredExponent
from tests.router.core.fleets import fleet

RULE = LoadAdaptive()


def test_load_is_the_larger_of_batch_and_kv_use_over_those_that_take_requests() -> None:
    views = fleet((0, 128), (0, 64), (0, 256))
    taking = [*views[:2], replace(views[2], state=InstanceState.DRAINING)]
    assert fleet_load(taking, 1000) == (128 + 64) / 2 / 256
    assert fleet_load([replace(v, kv_use=0.9) for v in taking[:1]] + taking[1:], 1000) == 0.9
    assert fleet_load([], 1000) == 0


def test_without_a_profile_the_rule_says_how_large_a_batch_is() -> None:
    assert fleet_load([replace(v, hardware=None) for v in fleet((0, 50))], 100) == 0.5


@given(loads=st.lists(st.floats(0, 1), max_size=50))
def test_high_load_begins_above_the_threshold_and_ends_below_the_hysteresis(loads: list[float]) -> None:
    high = False
    for load in loads:
        before, high = high, is_high(high, load, RULE)
        if load > RULE.threshold:
            assert high
        elif load <= RULE.threshold - RULE.hysteresis:
            assert not high
        else:
            assert high == before


@pytest.mark.parametrize(
    ("policy", "exponents"),
    [
        (Policy(load_adaptive=RULE), (1.0, 1.0, 0.75)),
        (Policy(c=0.5, load_adaptive=RULE), (1.0, 1.0, 0.375)),
        (Policy(load_adaptive=LoadAdaptive(exponent=LoweredExponent.B, factor=0.5)), (1.0, 0.5, None)),
        (Policy(), (1.0, 1.0, None)),
    ],
)
def test_what_high_load_lowers(policy: Policy, exponents: tuple[float, float, float | None]) -> None:
    low = lowered(policy)
    assert (low.a, low.b, low.c) == exponents
    assert low.label == policy.label
