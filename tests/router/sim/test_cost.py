"""The cost model adds up exactly."""

from hypothesis import given
from hypothesis import strategies as st

from router.core.hardware_profiles import A100_80G, HARDWARE_PROFILES
from router.sim.cost import StepCost, to_ps, to_s

COST = StepCost(A100_80G)
SEQUENCES = st.integers(1, 256)
KV_TOKENS = st.integers(1, 500_000)


def test_one_step_costs_what_the_profile_says() -> None:
    duration_s = to_s(COST.step_ps(prefill_tokens=1000, sequences=10, kv_tokens=20_000))
    assert abs(duration_s - A100_80G.step_s(prefill_tokens=1000, sequences=10, kv_tokens=20_000)) < 1e-9


@given(st.integers(1, 300), SEQUENCES, KV_TOKENS)
def test_a_run_lasts_as_long_as_its_steps(steps: int, sequences: int, kv_tokens: int) -> None:
    single = sum(COST.step_ps(0, sequences, kv_tokens + k * sequences) for k in range(steps))
    assert COST.run_ps(steps, sequences, kv_tokens) == single


@given(st.integers(0, to_ps(500.0)), SEQUENCES, KV_TOKENS)
def test_the_step_boundary_at_or_after_a_time_is_found(elapsed_ps: int, sequences: int, kv_tokens: int) -> None:
    steps = COST.steps_until(elapsed_ps, sequences, kv_tokens)
    assert COST.run_ps(steps, sequences, kv_tokens) >= elapsed_ps
    assert steps == 0 or COST.run_ps(steps - 1, sequences, kv_tokens) < elapsed_ps


def test_the_boundary_is_found_for_every_profile() -> None:
    for profile in HARDWARE_PROFILES.values():
        cost = StepCost(profile)
        assert cost.steps_until(cost.run_ps(1000, 7, 12_345), 7, 12_345) == 1000


def test_every_profile_names_a_source_and_costs_something() -> None:
    for name, profile in HARDWARE_PROFILES.items():
        assert profile.name == name
        assert profile.source != "custom"
        assert profile.step_s(prefill_tokens=1, sequences=1, kv_tokens=1) > 0
        assert profile.kv_capacity_tokens > profile.max_batch_tokens


def test_the_linear_decode_profile_is_the_published_line() -> None:
    profile = HARDWARE_PROFILES["linear-decode"]
    assert profile.step_s(sequences=1) == 0.015
    assert abs(profile.step_s(sequences=8) - 0.120) < 1e-12
