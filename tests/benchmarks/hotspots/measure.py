"""Running the plan, and the document of everything that was measured. Times are in seconds."""

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.core.hardware_profiles import A100_80G
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.outcomes import Outcomes, Status
from router.sim.parallel import Note, Work, do_all
from router.sim.policy_text import parse_policy
from router.sim.preloading import Preload
from router.sim.scenario import InstanceSpec, Restart, Scenario, uniform_fleet
from router.sim.traces.burst import Burst, with_burst
from router.sim.traces.generator import generate_profile
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.record import Trace
from tests.benchmarks.hotspots import plan
from tests.benchmarks.hotspots.plan import Handling, Ordinary

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Event(StrEnum):
    """What happens to the last instance of the fleet."""

    JOIN = "join"
    RESTART = "restart"


class BurstRun(msgspec.Struct, frozen=True, kw_only=True):
    """One policy under one burst: figures of the requests that arrived during the burst and shortly after."""

    shape: str
    policy: str
    requests: int
    ttft_mean_s: float
    ttft_p99_s: float
    tpot_mean_s: float
    tpot_p99_s: float
    mitigations: int
    mitigated_requests: int


class OrdinaryRun(msgspec.Struct, frozen=True, kw_only=True):
    """One workload without a burst, with the detector on."""

    workload: Ordinary
    mitigations: int


class NewInstance(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that landed on a new instance in its first minute, over all seeds.

    ``extra_s`` is their mean TTFT minus that of the very same requests in a fleet where nothing happened;
    ``versus_others_s`` is it minus the mean TTFT of what landed elsewhere in that minute; ``all_s`` and ``calm_s`` are
    the means over everything that arrived in it, with and without the event.
    """

    workload: str
    event: Event
    handling: str
    requests: int
    ttft_mean_s: float
    extra_s: float
    versus_others_s: float
    all_s: float
    calm_s: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document."""

    bursts: list[BurstRun]
    ordinary: list[OrdinaryRun]
    new_instances: list[NewInstance]


class BurstJob(msgspec.Struct, frozen=True):
    """One policy under one burst."""

    shape: Burst
    policy: str


class NewJob(msgspec.Struct, frozen=True):
    """One seed of a workload with every event and handling."""

    workload: Ordinary
    seed: int


def results(processes: int | None) -> Results:
    """Run everything, and say on standard error what is done."""
    policies = (plan.PLAIN, plan.MITIGATED, *plan.BASELINES)
    bursts = [BurstJob(shape, policy) for shape in plan.SHAPES for policy in policies]
    seeds = [NewJob(workload, seed) for workload in plan.LOADED for seed in plan.SEEDS]
    parts = _all(run_new, seeds, processes)
    return Results(
        bursts=_all(run_burst, bursts, processes),
        ordinary=_all(run_ordinary, plan.ORDINARY, processes),
        new_instances=_joined(parts),
    )


def run_burst(_: None, job: BurstJob, note: Note) -> BurstRun:
    """Run one policy under one burst."""
    calm = msgspec.structs.replace(GENERATORS["thinking"], burst_share=0.0)
    below = generate_profile(calm, plan.SEED, plan.BASE_DURATION_S, plan.BASE_RATE)
    outcomes = _run(with_burst(below, job.shape, plan.SEED), job.policy)
    arrival_s, ttft_s = _times(outcomes)
    end_s = job.shape.start_s + job.shape.duration_s + plan.AFTER_S
    measured = _done(outcomes) & (arrival_s >= job.shape.start_s) & (arrival_s < end_s)
    tpot_s = _tpot(outcomes, measured)
    _say(f"{job.shape.name}: {job.policy}")
    return BurstRun(
        shape=job.shape.name,
        policy=job.policy,
        requests=int(measured.sum()),
        ttft_mean_s=float(ttft_s[measured].mean()),
        ttft_p99_s=float(np.quantile(ttft_s[measured], 0.99)),
        tpot_mean_s=float(tpot_s.mean()),
        tpot_p99_s=float(np.quantile(tpot_s, 0.99)),
        mitigations=outcomes.mitigations,
        mitigated_requests=outcomes.mitigated_requests,
    )


def run_ordinary(_: None, workload: Ordinary, note: Note) -> OrdinaryRun:
    """Run one workload without a burst under the detector."""
    outcomes = _run(_trace(workload, plan.SEED), plan.MITIGATED)
    _say(f"{workload.generator} at {workload.requests_per_s} a second")
    return OrdinaryRun(workload=workload, mitigations=outcomes.mitigations)


class _Sums(msgspec.Struct):
    """Sums over requests that are added up over seeds."""

    workload: str
    event: Event
    handling: str
    new: int
    new_ttft_s: float
    new_calm_ttft_s: float
    others: int
    others_ttft_s: float
    all_calm_ttft_s: float


def run_new(_: None, job: NewJob, note: Note) -> list[_Sums]:
    """Let an instance join, and restart, under every handling, and compare with a fleet where nothing happened."""
    trace = _trace(job.workload, job.seed)
    calm = _run(trace, plan.PLAIN)
    found = [
        _sums(job.workload.generator, event, handling, _run_event(trace, event, handling), calm)
        for event, handlings in ((Event.JOIN, plan.JOINING), (Event.RESTART, plan.RESTARTING))
        for handling in handlings
    ]
    _say(f"{job.workload.generator}: joining and restarting, seed {job.seed}")
    return found


def _run_event(trace: Trace, event: Event, handling: Handling) -> Outcomes:
    others = uniform_fleet(A100_80G, plan.FLEET - 1)
    joins_s = plan.EVENT_S if event is Event.JOIN else 0.0
    scenario = Scenario(
        trace=trace,
        fleet=(*others, InstanceSpec(name="new", profile=A100_80G, join_s=joins_s)),
        restarts=(Restart(instance="new", at_s=plan.EVENT_S),) if event is Event.RESTART else (),
        preload=Preload() if handling.preload else None,
    )
    return Cluster(scenario, parse_policy(handling.policy)).run()


def _sums(workload: str, event: Event, handling: Handling, outcomes: Outcomes, calm: Outcomes) -> _Sums:
    arrival_s, ttft_s = _times(outcomes)
    calm_ttft_s = _times(calm)[1]
    window = _done(outcomes) & (arrival_s >= plan.EVENT_S) & (arrival_s < plan.EVENT_S + plan.FIRST_S)
    new = window & (np.asarray(outcomes.instance) == plan.FLEET - 1)
    return _Sums(
        workload=workload,
        event=event,
        handling=handling.title,
        new=int(new.sum()),
        new_ttft_s=float(ttft_s[new].sum()),
        new_calm_ttft_s=float(calm_ttft_s[new].sum()),
        others=int((window & ~new).sum()),
        others_ttft_s=float(ttft_s[window & ~new].sum()),
        all_calm_ttft_s=float(calm_ttft_s[window].sum()),
    )


def _joined(parts: Sequence[list[_Sums]]) -> list[NewInstance]:
    """Add up the seeds."""
    groups: dict[tuple[str, Event, str], list[_Sums]] = {}
    for sums in (one for part in parts for one in part):
        groups.setdefault((sums.workload, sums.event, sums.handling), []).append(sums)
    return [_new_instance(group) for group in groups.values()]


def _new_instance(group: Sequence[_Sums]) -> NewInstance:
    new = sum(sums.new for sums in group)
    others = sum(sums.others for sums in group)
    new_ttft_s = sum(sums.new_ttft_s for sums in group)
    others_ttft_s = sum(sums.others_ttft_s for sums in group)
    mean_s = new_ttft_s / max(1, new)
    return NewInstance(
        workload=group[0].workload,
        event=group[0].event,
        handling=group[0].handling,
        requests=new,
        ttft_mean_s=mean_s,
        extra_s=mean_s - sum(sums.new_calm_ttft_s for sums in group) / max(1, new),
        versus_others_s=mean_s - others_ttft_s / max(1, others),
        all_s=(new_ttft_s + others_ttft_s) / max(1, new + others),
        calm_s=sum(sums.all_calm_ttft_s for sums in group) / max(1, new + others),
    )


def _run(trace: Trace, policy: str) -> Outcomes:
    scenario = Scenario(trace=trace, fleet=uniform_fleet(A100_80G, plan.FLEET))
    return Cluster(scenario, parse_policy(policy)).run()


def _trace(workload: Ordinary, seed: int) -> Trace:
    profile = msgspec.structs.replace(GENERATORS[workload.generator], burst_share=0.0)
    return generate_profile(profile, seed, workload.duration_s, workload.requests_per_s)


def _times(outcomes: Outcomes) -> tuple[Floats, Floats]:
    arrival_s = np.asarray(outcomes.arrival_ps) / PS_PER_S
    return arrival_s, np.asarray(outcomes.first_ps) / PS_PER_S - arrival_s


def _done(outcomes: Outcomes) -> Mask:
    return np.asarray(np.asarray(outcomes.status) == Status.DONE)


def _tpot(outcomes: Outcomes, measured: Mask) -> Floats:
    output = np.asarray(outcomes.output_tokens)
    several = measured & (output > 1)
    decode_s = (np.asarray(outcomes.end_ps) - np.asarray(outcomes.first_ps)) / PS_PER_S
    return np.asarray(decode_s[several] / (output[several] - 1))


def _all(function: Callable[[None, object, Note], object], items: Sequence[object], processes: int | None) -> list:
    return do_all(Work(function, None, items), processes=processes)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
