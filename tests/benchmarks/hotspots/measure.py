"""Running the plan, and the document of everything that was measured. Times are in seconds."""

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.core.hardware_profiles import A100_80G
from router.core.preload_budget import PreloadBudget
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.outcomes import Outcomes, Status
from router.sim.parallel import Note, Work, do_all
from router.sim.policy_text import parse_policy
from router.sim.scenario import InstanceSpec, Restart, Scenario, uniform_fleet
from router.sim.traces.burst import Burst, with_burst
from router.sim.traces.generator import generate_profile
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.record import Trace
from tests.benchmarks.hotspots import plan
from tests.benchmarks.hotspots.plan import Handling, Ordinary, Treatment

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
    preload: bool = False
    preloads: int = 0


class OrdinaryRun(msgspec.Struct, frozen=True, kw_only=True):
    """One workload without a burst, with the detector on."""

    workload: Ordinary
    mitigations: int
    preloads: int = 0


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that landed on an instance that joined, by how many prefixes it was sent (see :class:`NewInstance`)."""

    workload: str
    prefixes: int
    sent: float
    """Preloads, the mean over the seeds."""
    requests: int
    extra_s: float
    hit_ratio: float


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
    fillings: list[Filling] = []


class BurstJob(msgspec.Struct, frozen=True):
    """One policy under one burst."""

    shape: Burst
    treatment: Treatment


class NewJob(msgspec.Struct, frozen=True):
    """One seed of a workload with every event and handling."""

    workload: Ordinary
    seed: int


def results(processes: int | None) -> Results:
    """Run everything, and say on standard error what is done."""
    treatments = (*plan.TREATMENTS, *(Treatment(name, name, False) for name in plan.BASELINES))
    bursts = [BurstJob(shape, treatment) for shape in plan.SHAPES for treatment in treatments]
    seeds = [NewJob(workload, seed) for workload in plan.LOADED for seed in plan.SEEDS]
    parts = _all(run_new, seeds, processes)
    return Results(
        bursts=_all(run_burst, bursts, processes),
        ordinary=_all(run_ordinary, plan.ORDINARY, processes),
        new_instances=_joined([part.events for part in parts]),
        fillings=_filled([part.fillings for part in parts]),
    )


def run_burst(_: None, job: BurstJob, note: Note) -> BurstRun:
    """Run one policy under one burst."""
    calm = msgspec.structs.replace(GENERATORS["thinking"], burst_share=0.0)
    below = generate_profile(calm, plan.SEED, plan.BASE_DURATION_S, plan.BASE_RATE)
    treatment = job.treatment
    outcomes = _run(with_burst(below, job.shape, plan.SEED), treatment.policy, treatment.preload)
    arrival_s, ttft_s = _times(outcomes)
    end_s = job.shape.start_s + job.shape.duration_s + plan.AFTER_S
    measured = _done(outcomes) & (arrival_s >= job.shape.start_s) & (arrival_s < end_s)
    tpot_s = _tpot(outcomes, measured)
    _say(f"{job.shape.name}: {treatment.title}")
    return BurstRun(
        shape=job.shape.name,
        policy=treatment.policy,
        preload=treatment.preload,
        preloads=outcomes.preloads,
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
    outcomes = _run(_trace(workload, plan.SEED), plan.MITIGATED, preload=True)
    _say(f"{workload.generator} at {workload.requests_per_s} a second")
    return OrdinaryRun(workload=workload, mitigations=outcomes.mitigations, preloads=outcomes.preloads)


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


class _Fill(msgspec.Struct):
    """One seed of one number of prefixes."""

    prefixes: int
    sent: int
    sums: _Sums
    cached_tokens: int
    prompt_tokens: int


class _Part(msgspec.Struct):
    """One seed of one workload."""

    events: list[_Sums]
    fillings: list[_Fill]


def run_new(_: None, job: NewJob, note: Note) -> _Part:
    """Let an instance join, and restart, under every handling, and compare with a fleet where nothing happened."""
    trace = _trace(job.workload, job.seed)
    calm = _run(trace, plan.PLAIN)
    name = job.workload.generator
    budget = PreloadBudget()
    found = [
        _sums(name, event, handling, _run_event(trace, event, handling, budget if handling.preload else None), calm)
        for event, handlings in ((Event.JOIN, plan.JOINING), (Event.RESTART, plan.RESTARTING))
        for handling in handlings
    ]
    fillings = [_run_filling(name, trace, prefixes, calm) for prefixes in plan.PREFIXES]
    _say(f"{name}: joining and restarting, seed {job.seed}")
    return _Part(found, fillings)


def _run_filling(workload: str, trace: Trace, prefixes: int, calm: Outcomes) -> _Fill:
    handling = plan.JOINING[-1]
    budget = PreloadBudget(most_prefixes=prefixes) if prefixes else None
    outcomes = _run_event(trace, Event.JOIN, handling, budget)
    new = _landed(outcomes)
    return _Fill(
        prefixes,
        outcomes.preloads,
        _sums(workload, Event.JOIN, handling, outcomes, calm),
        int(np.asarray(outcomes.cached_tokens)[new].sum()),
        int(np.asarray(outcomes.prompt_tokens)[new].sum()),
    )


def _run_event(trace: Trace, event: Event, handling: Handling, preload: PreloadBudget | None) -> Outcomes:
    others = uniform_fleet(A100_80G, plan.FLEET - 1)
    joins_s = plan.EVENT_S if event is Event.JOIN else 0.0
    scenario = Scenario(
        trace=trace,
        fleet=(*others, InstanceSpec(name="new", profile=A100_80G, join_s=joins_s)),
        restarts=(Restart(instance="new", at_s=plan.EVENT_S),) if event is Event.RESTART else (),
        preload=preload,
    )
    return Cluster(scenario, parse_policy(handling.policy)).run()


def _sums(workload: str, event: Event, handling: Handling, outcomes: Outcomes, calm: Outcomes) -> _Sums:
    ttft_s = _times(outcomes)[1]
    calm_ttft_s = _times(calm)[1]
    window, new = _first_minute(outcomes), _landed(outcomes)
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


def _first_minute(outcomes: Outcomes) -> Mask:
    arrival_s = _times(outcomes)[0]
    return _done(outcomes) & (arrival_s >= plan.EVENT_S) & (arrival_s < plan.EVENT_S + plan.FIRST_S)


def _landed(outcomes: Outcomes) -> Mask:
    """Return which requests landed on the new instance in its first minute."""
    return _first_minute(outcomes) & (np.asarray(outcomes.instance) == plan.FLEET - 1)


def _filled(parts: Sequence[list[_Fill]]) -> list[Filling]:
    """Add up the seeds."""
    groups: dict[tuple[str, int], list[_Fill]] = {}
    for fill in (one for part in parts for one in part):
        groups.setdefault((fill.sums.workload, fill.prefixes), []).append(fill)
    return [_filling(group) for group in groups.values()]


def _filling(group: Sequence[_Fill]) -> Filling:
    added = _new_instance([fill.sums for fill in group])
    return Filling(
        workload=added.workload,
        prefixes=group[0].prefixes,
        sent=sum(fill.sent for fill in group) / len(group),
        requests=added.requests,
        extra_s=added.extra_s,
        hit_ratio=sum(fill.cached_tokens for fill in group) / max(1, sum(fill.prompt_tokens for fill in group)),
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


def _run(trace: Trace, policy: str, preload: bool = False) -> Outcomes:
    fleet = uniform_fleet(A100_80G, plan.FLEET)
    scenario = Scenario(trace=trace, fleet=fleet, preload=PreloadBudget() if preload else None)
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
