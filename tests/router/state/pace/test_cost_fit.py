"""Costs are found again from equations, through noise and outliers, and the prior only fills what they leave open."""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G, HARDWARE_PROFILES
from router.state.pace.cost_fit import CostFit, fit_costs
from router.state.pace.cost_row import CostRow, decode_row, first_token_row, prefill_row
from router.state.pace.cost_rows import ROWS_A_CLASS, CostRows

OVERHEAD_S = 0.012
BATCHES = (1, 8, 32, 64)
KV_PER_SEQUENCE = 1500


def observations(true: HardwareProfile, seed: int, *, noise: float = 0.05, outliers: float = 0.0) -> Iterable[CostRow]:
    """Yield what 300 requests of varied length beside varied batches would show."""
    random = Random(seed)

    def disturbed(seconds: float) -> float:
        slow = random.uniform(2, 20) if random.random() < outliers else 1.0
        return seconds * random.lognormvariate(0, noise) * slow

    for _ in range(300):
        tokens = int(random.lognormvariate(6.5, 1.2)) + 1
        beside = random.uniform(0, 60)
        kv_tokens = beside * random.uniform(500, 3000)
        steps = -(-tokens // true.max_batch_tokens)
        step_s = true.step_s(sequences=1) - true.decode_s_per_sequence
        step_s += beside * true.decode_s_per_sequence + kv_tokens * true.decode_s_per_kv_token
        first_s = OVERHEAD_S + steps * step_s + tokens * true.prefill_s_per_token
        yield first_token_row(
            tokens,
            disturbed(first_s),
            sequences=beside,
            kv_tokens=kv_tokens,
            max_batch_tokens=true.max_batch_tokens,
        )
        count, others = int(random.lognormvariate(5, 0.8)) + 9, int(random.expovariate(1 / 3000))
        decode_s = count * step_s + others * true.prefill_s_per_token
        yield decode_row(count, disturbed(decode_s), sequences=beside, kv_tokens=kv_tokens, prefill_tokens=others)


def fitted(rows: Iterable[CostRow], prior: HardwareProfile = A100_80G) -> CostFit:
    kept = CostRows()
    for row in rows:
        kept.add(row)
    fit = fit_costs(kept, prior, "observed", "test")
    assert fit is not None
    return fit


def off(found: HardwareProfile, true: HardwareProfile) -> float:
    """Return the largest relative error of the prefill rate and of decode steps of several sizes."""
    ratios = [found.prefill_tokens_per_s / true.prefill_tokens_per_s]
    ratios += [
        found.step_s(sequences=n, kv_tokens=n * KV_PER_SEQUENCE)
        / true.step_s(sequences=n, kv_tokens=n * KV_PER_SEQUENCE)
        for n in BATCHES
    ]
    return max(abs(ratio - 1) for ratio in ratios)


@pytest.mark.parametrize("true", ["a100-80g", "h20", "l40s"])
@pytest.mark.parametrize("prior", ["a100-80g", "h100", "linear-decode"])
def test_costs_are_found_whatever_the_prior(true: str, prior: str) -> None:
    fit = fitted(observations(HARDWARE_PROFILES[true], 1), HARDWARE_PROFILES[prior])
    assert off(fit.profile, HARDWARE_PROFILES[true]) < 0.1
    assert fit.first_token_overhead_s == pytest.approx(OVERHEAD_S, rel=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_one_in_ten_answers_that_took_many_times_as_long_change_little(seed: int) -> None:
    true = HARDWARE_PROFILES["h20"]
    assert off(fitted(observations(true, seed, outliers=0.1)).profile, true) < 0.1


def test_an_engine_of_quite_another_pace_is_found_too() -> None:
    slow = replace(
        A100_80G,
        t0_s=A100_80G.t0_s * 50,
        prefill_s_per_token=A100_80G.prefill_s_per_token * 80,
        decode_s_per_sequence=A100_80G.decode_s_per_sequence * 50,
        decode_s_per_kv_token=A100_80G.decode_s_per_kv_token * 50,
    )
    assert off(fitted(observations(slow, 3)).profile, slow) < 0.1


def test_what_no_observation_shows_is_the_priors_at_the_observed_pace() -> None:
    """All batches of one size: only their sum is known, and the prior says how it divides."""
    twice = [decode_row(100, 100 * 2 * A100_80G.step_s(sequences=8), sequences=8, kv_tokens=0, prefill_tokens=0)] * 20
    found = fitted(twice).profile
    assert found.step_s(sequences=8) == pytest.approx(2 * A100_80G.step_s(sequences=8), rel=0.01)
    assert found.t0_s == pytest.approx(2 * A100_80G.t0_s, rel=0.05)
    assert found.prefill_s_per_token == pytest.approx(2 * A100_80G.prefill_s_per_token, rel=0.05)


def test_prefill_that_the_engine_measured_counts() -> None:
    tokens, rate = 50_000, 9_000
    found = fitted([prefill_row(tokens, tokens / rate, A100_80G.max_batch_tokens)] * 20).profile
    assert found.prefill_tokens_per_s == pytest.approx(rate, rel=0.03)


def test_nothing_observed_is_no_fit() -> None:
    assert fit_costs((), A100_80G, "observed", "test") is None


def test_memory_is_bounded_and_rare_sizes_stay() -> None:
    rows = CostRows()
    rows.add(first_token_row(5000, 1.0, sequences=0, kv_tokens=0, max_batch_tokens=8192))
    for _ in range(1000):
        rows.add(first_token_row(100, 0.1, sequences=0, kv_tokens=0, max_batch_tokens=8192))
    assert len(rows) == ROWS_A_CLASS + 1
    assert {row.prefill_tokens for row in rows} == {5000, 100}


positive = st.floats(1e-6, 1e4)


@given(
    st.lists(
        st.builds(
            decode_row,
            st.integers(1, 10_000),
            positive,
            sequences=st.floats(0, 1e4),
            kv_tokens=st.floats(0, 1e8),
            prefill_tokens=st.integers(0, 10**7),
        )
        | st.builds(
            first_token_row,
            st.integers(1, 10**6),
            positive,
            sequences=st.floats(0, 1e4),
            kv_tokens=st.floats(0, 1e8),
            max_batch_tokens=st.just(8192),
        )
        | st.builds(prefill_row, st.integers(1, 10**7), positive, st.just(8192)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(sorted(HARDWARE_PROFILES)),
)
def test_no_cost_is_ever_negative_or_not_a_number(rows: list[CostRow], prior: str) -> None:
    fit = fit_costs(rows, HARDWARE_PROFILES[prior], "observed", "test")
    assert fit is not None
    profile = fit.profile
    costs = (profile.t0_s, profile.prefill_s_per_token, profile.decode_s_per_sequence, profile.decode_s_per_kv_token)
    assert all(0 <= cost < float("inf") for cost in (*costs, fit.first_token_overhead_s))
    assert 0 <= fit.relative_error < float("inf")
