"""Which policy is in force as load moves."""

from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.terms import LoadAdaptive
from router.state.load_level import LoadLevels
from tests.router.core.fleets import fleet

ADAPTIVE = Policy(name="adaptive", load_adaptive=LoadAdaptive())


def at(load: float) -> list[InstanceView]:
    return fleet((0, round(load * 256)))


def test_the_exponent_is_lowered_at_high_load_until_it_falls_below_the_hysteresis() -> None:
    levels = LoadLevels()
    cs = [levels.in_force(ADAPTIVE, at(load)).c for load in (0.65, 0.75, 0.65, 0.55, 0.65)]
    assert cs == [None, 0.75, 0.75, None, None]


def test_policies_without_the_term_are_left_alone() -> None:
    plain = Policy()
    assert LoadLevels().in_force(plain, at(1.0)) is plain


def test_a_new_revision_takes_over_the_level_and_a_removed_policy_loses_it() -> None:
    levels = LoadLevels()
    levels.in_force(ADAPTIVE, at(0.75))
    revised = Policy(name="adaptive", revision=2, load_adaptive=LoadAdaptive(factor=0.5))
    assert levels.in_force(revised, at(0.65)).c == 0.5
    levels.keep_only(frozenset())
    assert levels.in_force(revised, at(0.65)).c is None
