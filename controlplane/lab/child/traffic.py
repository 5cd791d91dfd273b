"""The traffic of an order: never more requests in a run than ordered, whatever the rate."""

from pathlib import Path

import msgspec

from controlplane.lab.child.order import GeneratedTrace, OwnTraffic, SimulationOrder, TraceFile
from router.sim.scenario import InstanceSpec, Scenario, fleet_of, profile_of
from router.sim.traces.generator import generate
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.loading import load_trace
from router.sim.traces.record import Trace
from router.sim.traces.segments import Window, load_window
from router.sim.traces.transforms import limited, spread
from router.sim.traffic import RecordedTraffic, Traffic


class BoundedTraffic(msgspec.Struct, frozen=True):
    """Generated traffic that is denser at higher rates, and shorter where it would be more than ``requests``."""

    scenario: Scenario
    trace: GeneratedTrace
    requests: int

    def at(self, rate_scale: float) -> Scenario:
        """Return the scenario with ``rate_scale`` times as many requests a second."""
        drawn = drawn_trace(self.trace, self.requests, self.scenario.seed, rate_scale)
        return msgspec.structs.replace(self.scenario, trace=drawn)


def traffic_of(order: SimulationOrder) -> Traffic:
    """Load or draw the trace of an order.

    :raises SimError: when trace or fleet cannot be used.
    """
    if isinstance(order.trace, GeneratedTrace):
        return BoundedTraffic(_scenario(order, _EMPTY), order.trace, order.requests)
    if isinstance(order.trace, OwnTraffic):
        window = Window(since_unix_s=order.trace.since_unix_s, most=order.requests)
        return RecordedTraffic(_scenario(order, load_window(Path(order.trace.folder), window)))
    return RecordedTraffic(_scenario(order, _recorded(order, order.trace)))


def drawn_trace(wanted: GeneratedTrace, requests: int, seed: int, rate_scale: float) -> Trace:
    """Draw a trace at a multiple of its rate, with at most so many requests.

    :raises TraceError: when there would be none.
    """
    profile = GENERATORS[wanted.generator]
    requests_per_s = (wanted.requests_per_s or profile.requests_per_s) * rate_scale
    duration_s = min(wanted.duration_s or profile.duration_s, requests / requests_per_s)
    return generate(wanted.generator, seed=seed, duration_s=duration_s, requests_per_s=requests_per_s)


_EMPTY = Trace(name="", format="", block_tokens=16, requests=(), provenance="")


def _recorded(order: SimulationOrder, file: TraceFile) -> Trace:
    trace = named_trace(file)
    return limited(spread(trace) if order.spread else trace, order.requests)


def named_trace(file: TraceFile) -> Trace:
    """Load a trace file under the name that people know it by.

    :raises TraceError: naming the first faulty line.
    """
    return msgspec.structs.replace(load_trace(Path(file.path)), name=file.name)


def _fleet(order: SimulationOrder) -> tuple[InstanceSpec, ...]:
    if not order.members:
        return fleet_of(order.hardware, 1)
    return tuple(InstanceSpec(name=member.name, profile=profile_of(member.profile)) for member in order.members)


def _scenario(order: SimulationOrder, trace: Trace) -> Scenario:
    return Scenario(
        trace=trace,
        fleet=_fleet(order),
        observation=order.observation,
        warmup=order.warmup,
        seed=order.seed,
    )
