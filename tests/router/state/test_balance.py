"""Learning from first-token times: bounded, without drift, and it converges."""

from collections.abc import Callable
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config import InstanceConfig
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.policy import Policy
from router.core.prefix import PrefixIndex
from router.core.request import Request
from router.core.terms import EqualizeTtft
from router.state.balance import PATIENCE, Equalizers, TtftEqualizer
from router.state.booking import Booking
from router.state.fleet import Fleet

RULE = EqualizeTtft()
LEARNT = Policy(name="learnt", normalize_hardware=True, equalize_ttft=EqualizeTtft(samples=1))


def feed(learner: TtftEqualizer, rounds: int, **ttft_s: Callable[[], float]) -> None:
    """Give every kind the answers of so many rounds."""
    for _ in range(rounds * learner.rule.samples):
        for kind, draw in ttft_s.items():
            learner.observe(kind, draw())


def exponents(learner: TtftEqualizer) -> dict[str, float]:
    assert learner.balance is not None
    return dict(learner.balance.exponents)


def difference(learner: TtftEqualizer) -> float:
    """How much higher the exponent of the slow kind is, as far as anything was learnt."""
    known = {} if learner.balance is None else learner.balance.exponents
    return known.get("slow", 0.0) - known.get("fast", 0.0)


# -- the learner --


def test_it_converges_on_a_plant_whose_gap_shrinks_with_the_exponent() -> None:
    rng, learner = Random(1), TtftEqualizer(RULE)

    def slow_s() -> float:
        return 0.120 * exp(-2 * difference(learner))

    def fast_s() -> float:
        return 0.040 * exp(0.3 * difference(learner))

    feed(learner, 40, slow=lambda: rng.expovariate(1 / slow_s()), fast=lambda: rng.expovariate(1 / fast_s()))
    assert slow_s() == pytest.approx(fast_s(), rel=0.25)
    assert exponents(learner)["fast"] == 0


def test_equal_kinds_do_not_drift() -> None:
    learner = TtftEqualizer(RULE)
    feed(learner, 500, one=lambda: 0.05, other=lambda: 0.05)
    assert exponents(learner) == {"one": 0, "other": 0}


def test_what_lies_within_the_tolerance_moves_nothing() -> None:
    learner = TtftEqualizer(EqualizeTtft(tolerance=0.1))
    feed(learner, 50, one=lambda: 0.050, other=lambda: 0.058)
    assert exponents(learner) == {"one": 0, "other": 0}


def test_one_kind_alone_has_nothing_to_be_balanced_with() -> None:
    rng, learner = Random(1), TtftEqualizer(RULE)
    feed(learner, 50, one=lambda: rng.expovariate(20))
    assert exponents(learner) == {"one": 0}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-1, 1e6)), max_size=300), st.floats(0.01, 4))
def test_exponents_stay_within_their_limit_whatever_is_seen(seen: list[tuple[str, float]], limit: float) -> None:
    learner = TtftEqualizer(EqualizeTtft(samples=2, gain=1.0, limit=limit))
    for kind, ttft_s in seen:
        learner.observe(kind, ttft_s)
        if learner.balance is not None:
            assert learner.balance.reference_s > 0
            assert all(0 <= exponent <= limit for exponent in learner.balance.exponents.values())


def test_at_the_limit_it_turns_back_at_once() -> None:
    learner = TtftEqualizer(EqualizeTtft(limit=0.5))
    feed(learner, 100, slow=lambda: 0.5, fast=lambda: 0.05)
    assert exponents(learner) == {"slow": 0.5, "fast": 0}
    feed(learner, 1, slow=lambda: 0.05, fast=lambda: 0.5)
    assert exponents(learner)["slow"] < 0.5


def test_a_kind_that_hardly_answers_is_forgiven_and_one_that_does_not_is_forgotten() -> None:
    learner = TtftEqualizer(RULE)
    feed(learner, 5, slow=lambda: 0.5, fast=lambda: 0.05)
    high = exponents(learner)["slow"]
    silence = 2 * PATIENCE * RULE.samples
    learner.observe("slow", 0.5)
    for _ in range(silence - 1):
        learner.observe("fast", 0.05)
    assert 0 < exponents(learner)["slow"] < high
    for _ in range(2 * silence):
        learner.observe("fast", 0.05)
    assert exponents(learner) == {"fast": 0}


def test_equal_observations_give_equal_exponents() -> None:
    def learnt() -> dict[str, float]:
        rng, learner = Random(3), TtftEqualizer(RULE)
        feed(learner, 9, slow=lambda: rng.expovariate(5), fast=lambda: rng.expovariate(20))
        return exponents(learner)

    assert learnt() == learnt()


def test_a_new_revision_goes_on_and_a_removed_policy_is_forgotten() -> None:
    learners = Equalizers()
    learner = learners.of(LEARNT)
    revised = Policy(name="learnt", revision=2, normalize_hardware=True, equalize_ttft=EqualizeTtft(gain=0.5))
    assert learners.of(revised) is learner
    assert learner is not None
    assert learner.rule.gain == 0.5
    learners.keep_only(frozenset())
    assert learners.of(LEARNT) is not learner
    assert learners.of(Policy(name="learnt")) is None


# -- in a fleet --


def fleet_of(*profiles: str | None) -> Fleet:
    fleet = Fleet(PrefixIndex(max_blocks=10_000))
    configs = [
        InstanceConfig(
            id=f"id-{i}",
            name=f"gpu-{i}",
            url=f"http://127.0.0.1:{9000 + i}",
            hardware=None if profile is None else HARDWARE_PROFILES[profile],
        )
        for i, profile in enumerate(profiles)
    ]
    fleet.apply(configs, now_s=0.0)
    return fleet


def place(fleet: Fleet, now_s: float, pinned: int | None = None) -> Booking:
    request = Request("r", "m", 1000, pinned=pinned)
    return fleet.book(fleet.decide(request, b"", LEARNT, Random(0), now_s), b"", now_s)


def factors(fleet: Fleet) -> list[float]:
    decision = fleet.decide(Request("r", "m", 1000), b"", LEARNT, Random(0), now_s=9.0)
    return [candidate.factor for candidate in decision.candidates]


def answered(fleet: Fleet, streams: bool, pin: bool = False) -> None:
    """Both instances answer once: the first after a second, the other after a tenth of one."""
    bookings = [place(fleet, 1.0, pinned=slot if pin else None) for slot in range(2)]
    for booking in bookings:
        wait_s = 1.0 if booking.instance.slot == 0 else 0.1
        booking.first_byte(1.0 + wait_s if streams else None)


def test_decisions_follow_from_the_first_tokens_of_streams() -> None:
    fleet = fleet_of("a100-80g", "h100")
    fleet.follow([LEARNT])
    for _ in range(3):
        answered(fleet, streams=True)
    slow, fast = factors(fleet)
    assert fast == 1
    assert slow != 1


@pytest.mark.parametrize(("streams", "pin"), [(False, False), (True, True)], ids=["whole answers", "pinned requests"])
def test_nothing_is_learnt_from(streams: bool, pin: bool) -> None:
    fleet = fleet_of("a100-80g", "h100")
    for _ in range(3):
        answered(fleet, streams, pin)
    assert factors(fleet) == [1, 1]
