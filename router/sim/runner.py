"""Running policies, and keeping what a report shows."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from router.core.policy import Policy
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.load import load_over_time
from router.sim.metrics import LOAD_BINS, RunSummary, Slo, measured_span, summarize
from router.sim.outcomes import Outcomes, Status
from router.sim.parallel import PERMILLE, Note, OnProgress, Work, do_all
from router.sim.scenario import Scenario
from router.sim.sweep import Saturation, find_saturation
from router.sim.traffic import Traffic

CURVE_POINTS = 200


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its figures, and the curves that charts are drawn from."""

    summary: RunSummary
    rate_scale: float
    ttft_curve_s: list[float]
    """Quantiles at even steps from 0 to 1."""
    tpot_curve_s: list[float]
    load: list[list[float]]
    """Requests at each instance in each of the spans of ``load_span_s``."""
    load_start_s: float
    load_span_s: float
    choices: list[int] = []
    """Position in the fleet of the instance of each measured request, in the order of the trace; -1: there was none.
    Only where :class:`Setting` asks for it."""


class Job(msgspec.Struct, frozen=True):
    """A policy to run at a rate."""

    policy: Policy
    rate_scale: float = 1.0


class Setting(msgspec.Struct, frozen=True):
    """What all jobs of a comparison share."""

    traffic: Traffic
    slo: Slo = Slo()
    start_scale: float = 1.0
    """A rate scale to begin a search for saturation with."""
    precision: float = 0.03
    """How close (relative) such a search comes."""
    keep_choices: bool = False


def run_job(setting: Setting, job: Job, note: Note) -> RunReport:
    """Run one job in this process.

    :raises SimError: when the scenario cannot be run.
    """
    scenario = setting.traffic.at(job.rate_scale)
    requests = len(scenario.trace.requests)
    started = time.perf_counter()
    outcomes = Cluster(scenario, job.policy, lambda ended: note(ended * PERMILLE // requests)).run()
    wall_s = time.perf_counter() - started
    note(PERMILLE)
    report = _report(scenario, job, outcomes, setting.slo, wall_s)
    return msgspec.structs.replace(report, choices=_choices(scenario, outcomes)) if setting.keep_choices else report


def run_jobs(
    setting: Setting, jobs: Sequence[Job], *, processes: int | None = None, on_progress: OnProgress | None = None
) -> list[RunReport]:
    """Run every job, in parallel processes; reports in the order of the jobs.

    :raises SimError: when the scenario cannot be run.
    """
    return do_all(Work(run_job, setting, jobs), processes=processes, on_progress=on_progress)


def saturate(setting: Setting, policy: Policy, note: Note) -> Saturation:
    """Find the highest rate that a policy sustains.

    :raises ScenarioError: when there is none.
    """

    def completed(rate_scale: float) -> RunSummary:
        return run_job(setting, Job(policy, rate_scale), lambda _: None).summary

    saturation = find_saturation(completed, start=setting.start_scale, precision=setting.precision)
    note(PERMILLE)
    return saturation


def saturate_all(
    setting: Setting,
    policies: Sequence[Policy],
    *,
    processes: int | None = None,
    on_progress: OnProgress | None = None,
) -> list[Saturation]:
    """Find the saturation of every policy, in parallel processes.

    :raises ScenarioError: when one has none.
    """
    return do_all(Work(saturate, setting, policies), processes=processes, on_progress=on_progress)


def _report(scenario: Scenario, job: Job, outcomes: Outcomes, slo: Slo, wall_s: float) -> RunReport:
    arrival_s = np.asarray(outcomes.arrival_ps) / PS_PER_S
    start_s, stop_s = measured_span(scenario, arrival_s)
    done = (np.asarray(outcomes.status) == Status.DONE) & (arrival_s >= start_s)
    first_s, end_s = np.asarray(outcomes.first_ps) / PS_PER_S, np.asarray(outcomes.end_ps) / PS_PER_S
    later = np.asarray(outcomes.output_tokens)[done] - 1
    ttft_s = (first_s - arrival_s)[done]
    tpot_s = (end_s - first_s)[done][later > 0] / later[later > 0]
    load = load_over_time(outcomes, len(scenario.fleet), LOAD_BINS, start_s, stop_s)
    return RunReport(
        summary=summarize(scenario, job.policy, outcomes, slo, wall_s),
        rate_scale=job.rate_scale,
        ttft_curve_s=_curve(ttft_s),
        tpot_curve_s=_curve(tpot_s),
        load=[[round(value, 3) for value in row] for row in load.tolist()],
        load_start_s=start_s,
        load_span_s=(stop_s - start_s) / LOAD_BINS,
    )


def _choices(scenario: Scenario, outcomes: Outcomes) -> list[int]:
    arrival_s = np.asarray(outcomes.arrival_ps) / PS_PER_S
    start_s, stop_s = measured_span(scenario, arrival_s)
    chosen = np.where(np.asarray(outcomes.status) == Status.REFUSED, -1, np.asarray(outcomes.instance))
    measured: list[int] = chosen[(arrival_s >= start_s) & (arrival_s <= stop_s)].tolist()
    return measured


def _curve(values: "np.ndarray[Any, np.dtype[np.float64]]") -> list[float]:
    if not len(values):
        return []
    return [round(value, 6) for value in np.quantile(values, np.linspace(0, 1, CURVE_POINTS + 1)).tolist()]
