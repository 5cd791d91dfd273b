"""What simulating costs on one core: a trace through one policy, at fleets of growing size.

The same load per instance is offered to each fleet, so the cost of a request may grow with the fleet, but no faster.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from router.core.policy import Policy
from router.sim.cluster import Cluster
from router.sim.scenario import Scenario, fleet_of
from router.sim.traces.generator import generate
from router.sim.traces.loading import load_trace
from router.sim.traces.record import Trace
from router.sim.traces.transforms import limited

HELP = "simulate a trace at fleets of growing size"

INSTANCES = (16, 64)
REQUESTS = 12_000
RATE_PER_INSTANCE = 3.0
_KIB_PER_MB = 1024.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--instances", type=int, nargs="+", default=INSTANCES, help="sizes of the fleet (16 64)")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="requests to generate (12000)")
    parser.add_argument("--generator", default="chatbot", help="what to generate (chatbot)")
    parser.add_argument("--trace", type=Path, help="a trace file to simulate instead, as it was recorded")
    parser.add_argument("--policy", default="multiplicative", help="the scorer (multiplicative)")


def measure(args: argparse.Namespace) -> dict[str, float | str]:
    """Measure as the command line asks; figures end in the number of instances."""
    figures: dict[str, float | str] = {}
    for instances in args.instances:
        trace = _trace(args, instances)
        wall_s, cpu_s = _timed(trace, instances, args.policy)
        requests = len(trace.requests)
        figures |= {
            f"requests_{instances}": float(requests),
            f"wall_s_{instances}": wall_s,
            f"cpu_s_{instances}": cpu_s,
            f"cpu_us_per_request_{instances}": cpu_s / requests * 1e6,
            f"requests_per_s_{instances}": requests / wall_s,
        }
    figures["peak_rss_mb"] = _peak_rss_mb()
    return figures


def _trace(args: argparse.Namespace, instances: int) -> Trace:
    if args.trace is not None:
        return limited(load_trace(args.trace), args.requests if args.requests != REQUESTS else None)
    rate = RATE_PER_INSTANCE * instances
    return generate(args.generator, duration_s=args.requests / rate, requests_per_s=rate)


def _timed(trace: Trace, instances: int, scorer: str) -> tuple[float, float]:
    """Return (wall, CPU) seconds of one run, the reading of the trace left out."""
    cluster = Cluster(Scenario(trace=trace, fleet=fleet_of(None, instances)), Policy(scorer=scorer))
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    cluster.run()
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def _peak_rss_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _KIB_PER_MB if sys.platform != "darwin" else peak / _KIB_PER_MB**2
