"""Calibrated traffic in its steady state, a lap at a time.

A generated trace begins with nobody in the middle of a session, so its rate grows for a while. What is played is the
part after that, stretched to the rate that was asked for.
"""

import msgspec

from router.sim.traces.generator import generate
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.record import Trace

RAMPS = 4.0
"""How many mean think times pass before the rate no longer grows noticeably."""


def steady_lap(kind: str, *, seed: int, rate: float, duration_s: float) -> Trace:
    """Generate ``duration_s`` seconds of traffic at ``rate`` requests a second from the first second on.

    :raises TraceError: for a kind that there is no generator for, or when no request falls into the time.
    """
    profile = GENERATORS.get(kind)
    ramp_s = RAMPS * profile.think_mean_s if profile is not None else 0.0
    trace = generate(kind, seed=seed, duration_s=ramp_s + duration_s, requests_per_s=rate)
    steady = [request for request in trace.requests if request.arrival_s >= ramp_s]
    stretch = len(steady) / (rate * duration_s)
    moved = (msgspec.structs.replace(each, arrival_s=(each.arrival_s - ramp_s) * stretch) for each in steady)
    provenance = f"{trace.provenance}; from its steady state, stretched to {rate:g} requests/s"
    return msgspec.structs.replace(trace, requests=tuple(moved), provenance=provenance)
