"""From what happened to what is reported: distributions, hit ratio, goodput, imbalance.

The first requests to arrive (the warm-up share) are left out of every figure but the counts of ends.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.core.policy import Policy
from router.sim.cost import PS_PER_S
from router.sim.load import imbalance, load_over_time
from router.sim.outcomes import Outcomes, Status
from router.sim.scenario import Scenario

LOAD_BINS = 120
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Slo(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as good service for one request."""

    ttft_s: float = 2.0
    tpot_s: float = 0.1


class Distribution(msgspec.Struct, frozen=True):
    """Mean and quantiles, all 0 when nothing was measured."""

    mean: float
    p50: float
    p90: float
    p99: float


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run. Ratios are 0..1, times in seconds, of the requests after the warm-up."""

    policy: str
    scorer: str
    requests: int
    """Requests that are measured."""
    refused: int
    failed: int
    hit_ratio: float
    """Share of prompt tokens that engines had in their caches."""
    predicted_hit_ratio: float
    """The same, as the router expected it."""
    cached_elsewhere_ratio: float
    """Share of prompt tokens computed although the router expected them in another instance's cache."""
    ttft_s: Distribution
    tpot_s: Distribution
    e2e_s: Distribution
    requests_per_s: float
    """Arrivals a second in the measured span."""
    completed_per_arrived: float
    """Requests that ended over requests that arrived in the measured span; well below 1 past saturation."""
    output_tokens_per_s: float
    goodput_per_s: float
    """Requests a second that met the SLO."""
    slo_share: float
    load_max_over_mean: float
    load_cv: float
    preemptions: int
    recomputed_tokens: int
    mitigations: int
    """How often a hotspot mitigation began."""
    mitigated_requests: int
    ttft_mean_by_hardware_s: dict[str, float]
    request_share_by_hardware: dict[str, float] = {}
    """By kind, its share (0..1) of the requests that are measured."""
    simulated_s: float
    wall_s: float


def summarize(scenario: Scenario, policy: Policy, outcomes: Outcomes, slo: Slo, wall_s: float) -> RunSummary:
    """Compute the figures of one run."""
    arrival_s, first_s, end_s = (
        np.asarray(column) / PS_PER_S for column in (outcomes.arrival_ps, outcomes.first_ps, outcomes.end_ps)
    )
    status = np.asarray(outcomes.status)
    start_s, stop_s = measured_span(scenario, arrival_s)
    window = (arrival_s >= start_s) & (arrival_s <= stop_s)
    measured = window & (status == Status.DONE)
    prompt, output = np.asarray(outcomes.prompt_tokens), np.asarray(outcomes.output_tokens)
    ttft_s = (first_s - arrival_s)[measured]
    later = measured & (output > 1)
    tpot_s = (end_s - first_s)[later] / (output[later] - 1)
    asked = int(prompt[measured].sum())
    span_s = max(stop_s - start_s, 1e-9)
    good = _good(measured, first_s - arrival_s, end_s - first_s, output, slo)
    ended = int(((end_s > start_s) & (end_s <= stop_s) & (status == Status.DONE)).sum())
    load = load_over_time(outcomes, len(scenario.fleet), LOAD_BINS, start_s, stop_s)
    max_over_mean, cv = imbalance(load)
    ttft_mean_by_hardware_s, request_share_by_hardware = _by_hardware(scenario, outcomes, measured, first_s - arrival_s)
    return RunSummary(
        policy=policy.name,
        scorer=policy.scorer,
        requests=int(measured.sum()),
        refused=int((status == Status.REFUSED).sum()),
        failed=int((status == Status.FAILED).sum()),
        hit_ratio=_share(outcomes.cached_tokens, measured, asked),
        predicted_hit_ratio=_share(outcomes.predicted_tokens, measured, asked),
        cached_elsewhere_ratio=_share(outcomes.elsewhere_tokens, measured, asked),
        ttft_s=distribution(ttft_s),
        tpot_s=distribution(tpot_s),
        e2e_s=distribution((end_s - arrival_s)[measured]),
        requests_per_s=float(window.sum() / span_s),
        completed_per_arrived=ended / max(1, int(window.sum())),
        output_tokens_per_s=float(output[measured].sum() / span_s),
        goodput_per_s=float(good.sum() / span_s),
        slo_share=float(good.sum() / max(1, int(window.sum()))),
        load_max_over_mean=max_over_mean,
        load_cv=cv,
        preemptions=outcomes.preemptions,
        recomputed_tokens=int(np.asarray(outcomes.recomputed_tokens)[measured].sum()),
        mitigations=outcomes.mitigations,
        mitigated_requests=outcomes.mitigated_requests,
        ttft_mean_by_hardware_s=ttft_mean_by_hardware_s,
        request_share_by_hardware=request_share_by_hardware,
        simulated_s=outcomes.end_time_ps / PS_PER_S,
        wall_s=wall_s,
    )


def measured_span(scenario: Scenario, arrival_s: Floats) -> tuple[float, float]:
    """Return when the measured span begins (after the warm-up share of arrivals) and ends (with the last arrival)."""
    ordered = np.sort(arrival_s)
    skipped = int(len(ordered) * scenario.warmup)
    return float(ordered[skipped]), float(ordered[-1])


def distribution(values: Floats) -> Distribution:
    """Return mean and quantiles."""
    if not len(values):
        return Distribution(0.0, 0.0, 0.0, 0.0)
    p50, p90, p99 = np.quantile(values, (0.5, 0.9, 0.99))
    return Distribution(float(values.mean()), float(p50), float(p90), float(p99))


def _good(measured: Mask, ttft_s: Floats, decode_s: Floats, output: NDArray[np.int64], slo: Slo) -> Mask:
    within = decode_s <= slo.tpot_s * np.maximum(1, output - 1)
    return np.asarray(measured & (ttft_s <= slo.ttft_s) & within)


def _share(tokens: object, measured: Mask, asked: int) -> float:
    return float(np.asarray(tokens)[measured].sum() / asked) if asked else 0.0


def _by_hardware(
    scenario: Scenario, outcomes: Outcomes, measured: Mask, ttft_s: Floats
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean TTFT of each kind (0 where nothing is measured) and its share of the measured requests."""
    place = np.asarray(outcomes.instance)
    kinds = sorted({spec.profile.name for spec in scenario.fleet})
    means, shares = {}, {}
    for kind in kinds:
        places = [i for i, spec in enumerate(scenario.fleet) if spec.profile.name == kind]
        mine = measured & np.isin(place, places)
        means[kind] = float(ttft_s[mine].mean()) if mine.any() else 0.0
        shares[kind] = float(mine.sum() / max(1, measured.sum()))
    return means, shares
