"""The pace of an instance over several workers: the mean of their costs, each by how much it saw."""

import pytest

from controlplane.telemetry.observed_pace import put_together
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.snapshot import PaceSample

H100 = HARDWARE_PROFILES["h100"]


def sample(t0_s: float, answers: int, *, enough: bool = True) -> PaceSample:
    return PaceSample(t0_s, 2e-5, 1e-4, 2e-8, 0.01, answers, answers, 0.02, enough)


def test_who_saw_more_counts_for_more() -> None:
    pace = put_together([sample(0.004, 100), sample(0.008, 300)], "gpu-7", H100, 80_000)
    assert pace.profile.t0_s == pytest.approx(0.007)
    assert pace.profile.prefill_s_per_token == pytest.approx(2e-5)
    assert (pace.prefill_samples, pace.decode_samples, pace.enough) == (400, 400, True)
    assert pace.prefill_tokens_per_s == pace.profile.prefill_tokens_per_s
    assert pace.configured_prefill_tokens_per_s == H100.prefill_tokens_per_s


def test_sizes_are_the_engines_and_the_configured_ones() -> None:
    profile = put_together([sample(0.004, 10)], "gpu-7", H100, 80_000).profile
    assert (profile.name, profile.kv_capacity_tokens, profile.max_sequences) == (
        "observed-gpu-7",
        80_000,
        H100.max_sequences,
    )


def test_without_a_configured_profile_only_what_was_observed_is_shown() -> None:
    pace = put_together([sample(0.004, 10, enough=False)], "gpu-7", None, None)
    assert pace.configured is None
    assert {step.configured_s for step in pace.decode_steps} == {None}
    assert not pace.enough


def test_the_curve_is_that_of_the_profile() -> None:
    pace = put_together([sample(0.004, 10)], "gpu-7", H100, None)
    for step in pace.decode_steps:
        kv_tokens = step.batch * pace.context_tokens
        assert step.observed_s == pace.profile.step_s(sequences=step.batch, kv_tokens=kv_tokens)
        assert step.configured_s == H100.step_s(sequences=step.batch, kv_tokens=kv_tokens)
