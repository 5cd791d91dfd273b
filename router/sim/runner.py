"""Running one or many policies, each in a process of its own, and keeping what a report shows."""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

import msgspec
import numpy as np

from router.core.policy import Policy
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.load import load_over_time
from router.sim.metrics import LOAD_BINS, RunSummary, Slo, measured_span, summarize
from router.sim.outcomes import Outcomes, Status
from router.sim.scenario import Scenario
from router.sim.traffic import Traffic

CURVE_POINTS = 200
POLL_S = 0.2
PERMILLE = 1000

OnProgress = Callable[[Sequence[int]], None]
"""Gets, for each job, how many permille of its requests have ended."""


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


class Job(msgspec.Struct, frozen=True):
    """A policy to run at a rate."""

    policy: Policy
    rate_scale: float = 1.0


def run_one(
    traffic: Traffic, job: Job, slo: Slo | None = None, on_progress: Callable[[int], None] | None = None
) -> RunReport:
    """Run one job in this process; progress is told in permille of its requests.

    :raises SimError: when the scenario cannot be run.
    """
    scenario = traffic.at(job.rate_scale)
    requests = len(scenario.trace.requests)

    def note(ended: int) -> None:
        if on_progress is not None:
            on_progress(ended * PERMILLE // requests)

    started = time.perf_counter()
    outcomes = Cluster(scenario, job.policy, note).run()
    wall_s = time.perf_counter() - started
    note(requests)
    return _report(scenario, job, outcomes, slo or Slo(), wall_s)


def run_many(
    traffic: Traffic,
    jobs: Sequence[Job],
    *,
    slo: Slo | None = None,
    processes: int | None = None,
    on_progress: OnProgress | None = None,
) -> list[RunReport]:
    """Run every job, in parallel processes where there is more than one of both; reports in the order of the jobs.

    :raises SimError: when the scenario cannot be run.
    """
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    if workers <= 1:
        return _run_here(traffic, jobs, slo, on_progress)
    context = multiprocessing.get_context("spawn")
    done = context.Array("q", len(jobs), lock=False)
    with ProcessPoolExecutor(workers, context, _adopt, (traffic, slo, done)) as pool:
        futures = [pool.submit(_run_adopted, position, job) for position, job in enumerate(jobs)]
        try:
            _watch(futures, done, on_progress)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _run_here(
    traffic: Traffic, jobs: Sequence[Job], slo: Slo | None, on_progress: OnProgress | None
) -> list[RunReport]:
    done = [0] * len(jobs)
    reports = []
    for position, job in enumerate(jobs):

        def note(permille: int, position: int = position) -> None:
            done[position] = permille
            if on_progress is not None:
                on_progress(done)

        reports.append(run_one(traffic, job, slo, note))
    return reports


def _watch(futures: Sequence[Future[RunReport]], permille: Sequence[int], on_progress: OnProgress | None) -> None:
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for future in ended:
            future.result()
        if on_progress is not None:
            on_progress(permille)


_adopted: dict[str, Any] = {}
"""What a worker process runs; filled once when it starts."""


def _adopt(traffic: Traffic, slo: Slo | None, done: Any) -> None:
    _adopted.update(traffic=traffic, slo=slo, done=done)


def _run_adopted(position: int, job: Job) -> RunReport:
    done = _adopted["done"]

    def note(permille: int) -> None:
        done[position] = permille

    return run_one(_adopted["traffic"], job, _adopted["slo"], note)


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


def _curve(values: "np.ndarray[Any, np.dtype[np.float64]]") -> list[float]:
    if not len(values):
        return []
    return [round(value, 6) for value in np.quantile(values, np.linspace(0, 1, CURVE_POINTS + 1)).tolist()]
