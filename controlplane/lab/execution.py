"""Running one claimed simulation: an order for the child, watching it, and what it left."""

import logging
import time
from pathlib import Path

import msgspec

from controlplane.errors import Invalid
from controlplane.lab.child.order import GeneratedTrace, OwnTraffic, SimulationOrder, TraceFile
from controlplane.lab.child_process import ChildProcess, running
from controlplane.lab.limits import MEMORY_BYTES, limits
from controlplane.lab.models import Simulation
from controlplane.lab.own_traffic import own_minutes
from controlplane.lab.policy_choice import policies_of
from controlplane.lab.selectors import routable_members
from controlplane.lab.services.claims import fail, finish, give_back, still_mine
from controlplane.lab.simulation_settings import SimulationSettings
from controlplane.lab.stopping import STOPPING
from controlplane.lab.storage import last_minutes_folder, scratch, trace_path
from router.sim.metrics import Slo
from router.sim.report.comparison import Comparison
from router.sim.scenario import Observation
from router.sim.traces.generator_profiles import GENERATORS

TICK_S = 0.5
"""Time between two looks at the row: progress is written, and a cancelled run noticed, twice a second."""

logger = logging.getLogger(__name__)


def execute(simulation: Simulation) -> None:
    """Run a claimed simulation to its end, or until it is no longer the caller's."""
    with scratch(str(simulation.pk)) as folder:
        result_path = Path(folder) / "result.json"
        try:
            order = order_of(simulation, result_path)
        except (Invalid, msgspec.ValidationError) as error:
            fail(simulation, f"It cannot be run as it was asked for: {error}")
            return
        with running(order, Path(folder)) as child:
            _watch(simulation, child, result_path)


def order_of(simulation: Simulation, result_path: Path) -> SimulationOrder:
    """Return the order for the child.

    :raises Invalid: when a policy cannot be any more, or the trace is gone.
    """
    wanted = msgspec.convert(simulation.settings, type=SimulationSettings)
    in_force = limits()
    members = routable_members() if wanted.as_registered else ()
    if wanted.as_registered and not members:
        raise Invalid({"fleet": ["No instance takes requests at present."]})
    return SimulationOrder(
        trace=_trace(simulation, wanted),
        policies=policies_of(simulation.contents),
        hardware=wanted.fleet,
        requests=min(wanted.requests, in_force.requests),
        rate_scales=tuple(wanted.rate_scales),
        sweep=wanted.sweep,
        spread=wanted.spread,
        observation=Observation(report_delay_s=wanted.report_delay_s, kv_event_delay_s=wanted.kv_event_delay_s),
        warmup=wanted.warmup,
        seed=wanted.seed,
        slo=Slo(ttft_s=wanted.slo_ttft_s, tpot_s=wanted.slo_tpot_s),
        processes=in_force.processes,
        result_path=str(result_path),
        memory_bytes=MEMORY_BYTES,
        members=members,
        placements=wanted.as_registered,
    )


def _trace(simulation: Simulation, wanted: SimulationSettings) -> GeneratedTrace | TraceFile | OwnTraffic:
    minutes = own_minutes(wanted.trace)
    if minutes is not None:
        since_unix_s = simulation.created_at.timestamp() - 60 * minutes
        return OwnTraffic(folder=str(last_minutes_folder()), since_unix_s=since_unix_s)
    if wanted.trace in GENERATORS:
        return GeneratedTrace(
            generator=wanted.trace, duration_s=wanted.duration_s, requests_per_s=wanted.requests_per_s
        )
    if simulation.trace is None:
        raise Invalid({"trace": [f"{simulation.trace_name} was deleted."]})
    return TraceFile(path=str(trace_path(simulation.trace.pk)), name=simulation.trace.name)


def _watch(simulation: Simulation, child: ChildProcess, result_path: Path) -> None:
    limit_s = limits().time_s
    deadline_s = time.monotonic() + limit_s
    while (status := child.wait(TICK_S)) is None:
        if not still_mine(simulation, child.progress):
            logger.info("simulation %s is no longer ours, ending process %d", simulation.pk, child.pid)
            return
        if STOPPING.is_set():
            give_back(simulation)
            return
        if time.monotonic() > deadline_s:
            fail(simulation, f"It took longer than {limit_s:g} s (POINTSMAN_LAB_TIME_LIMIT_S); ask for fewer requests.")
            return
    _settle(simulation, child, status, result_path)


def _settle(simulation: Simulation, child: ChildProcess, status: int, result_path: Path) -> None:
    if status == 0:
        comparison = msgspec.json.decode(result_path.read_bytes(), type=Comparison)
        finish(simulation, msgspec.to_builtins(comparison))
    elif child.fault is not None:
        where = "" if child.fault.line is None else f"line {child.fault.line} of the trace: "
        fail(simulation, where + child.fault.reason)
    else:
        logger.error("simulation %s: child ended with %d: %s", simulation.pk, status, child.last_words())
        how = f"signal {-status}" if status < 0 else f"status {status}"
        fail(simulation, f"Its process ended with {how}; the log of the task worker says more.")
