"""Simulate policies on a trace: what they would do to a fleet, before they touch traffic."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from router.core.errors import CoreError
from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.policy import Policy
from router.sim.errors import ScenarioError, SimError
from router.sim.fitting import read_profile
from router.sim.metrics import Slo
from router.sim.parallel import PERMILLE, OnProgress
from router.sim.policy_text import parse_policies
from router.sim.report.comparison import Comparison, provenance_of
from router.sim.report.html import bundled_plotly_js, comparison_html
from router.sim.report.json_text import comparison_json
from router.sim.report.table import comparison_table
from router.sim.runner import Job, RunReport, Setting, run_jobs, saturate_all
from router.sim.scenario import Observation, Scenario, fleet_of
from router.sim.sweep import Saturation
from router.sim.traces.generator import generate
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.loading import TraceFormat, load_trace
from router.sim.traces.transforms import limited, spread, with_shorter_outputs
from router.sim.traffic import GeneratedTraffic, RecordedTraffic, Traffic

HELP = "compare policies on a trace"
DEFAULT_POLICIES = "multiplicative,vllm,llm_d,llm_d_predict,linear,dynamo"
SWEEP_SHARES = (0.3, 0.5, 0.7, 0.85, 1.0)
"""Shares of the best policy's saturation rate that a sweep runs at."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("trace", help=f"a trace file, or a generator: {', '.join(GENERATORS)}")
    parser.add_argument("--format", choices=["auto", *TraceFormat], default="auto")
    parser.add_argument("--policies", default=DEFAULT_POLICIES, help="scorer[:name=value]..., separated by commas")
    parser.add_argument("--instances", type=int, default=16)
    parser.add_argument(
        "--hardware", metavar="PROFILE[:COUNT],...", help="kinds of instances, by name or JSON file (default a100-80g)"
    )
    parser.add_argument("--profile", type=Path, action="append", default=[], metavar="FILE", help="a profile to add")
    parser.add_argument("--rate-scale", type=float, default=1.0, help="arrivals this many times as fast")
    parser.add_argument("--limit", type=int, help="only the first requests of the trace")
    parser.add_argument("--max-output", type=int, help="most tokens to generate for a request")
    parser.add_argument("--no-spread", action="store_true", help="keep the batches of recorded arrivals")
    parser.add_argument("--duration", type=float, help="seconds to generate")
    parser.add_argument("--rate", type=float, help="requests a second to generate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warmup", type=float, default=0.1, help="share of the requests that is not measured")
    parser.add_argument("--slo-ttft", type=float, default=Slo().ttft_s, metavar="S")
    parser.add_argument("--slo-tpot", type=float, default=Slo().tpot_s, metavar="S")
    parser.add_argument("--report-period", type=float, default=Observation().report_period_s, metavar="S")
    parser.add_argument("--report-delay", type=float, default=Observation().report_delay_s, metavar="S")
    parser.add_argument("--kv-event-delay", type=float, metavar="S", help="engines publish KV events, this late")
    parser.add_argument("--exact-queue", action="store_true", help="engines report exact uncached waiting tokens")
    parser.add_argument("--sweep", action="store_true", help="find saturation, then run at shares of the best one")
    parser.add_argument("--processes", type=int, help="policies that run at once (default: one a core)")
    parser.add_argument("--output", choices=["table", "json", "html"], default="table")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write there instead of to standard output")
    parser.add_argument("--plotly-js", type=Path, metavar="FILE", help="drawing script to put into the HTML page")


def run(args: argparse.Namespace) -> int:
    """Run the comparison; 0 when it ran, 2 when it was asked for in a way that cannot be run."""
    try:
        comparison = compare(args)
        _write(args, comparison)
    except (SimError, CoreError, OSError) as error:
        sys.stderr.write(f"pointsman simulate: {error}\n")
        return 2
    return 0


def compare(args: argparse.Namespace) -> Comparison:
    """Run what the arguments ask for.

    :raises SimError: when trace or scenario cannot be used.
    :raises CoreError: when a policy cannot be used.
    """
    policies = parse_policies(args.policies)
    slo = Slo(ttft_s=args.slo_ttft, tpot_s=args.slo_tpot)
    traffic = _traffic(args)
    setting = Setting(traffic, slo)
    traffic.at(args.rate_scale).check()
    saturation: dict[str, Saturation] = {}
    scales: Sequence[float] = (args.rate_scale,)
    if args.sweep:
        saturation = _find_saturation(setting, policies, args.processes)
        best = max(found.rate_scale for found in saturation.values())
        scales = [best * share for share in SWEEP_SHARES]
    jobs = [Job(policy, scale) for scale in scales for policy in policies]
    runs = _run(setting, jobs, args.processes)
    return Comparison(
        provenance=provenance_of(traffic.at(args.rate_scale), slo), runs=tuple(runs), saturation=saturation
    )


def _traffic(args: argparse.Namespace) -> Traffic:
    path = Path(args.trace)
    generated = args.trace in GENERATORS and not path.exists()
    if generated:
        trace = generate(args.trace, seed=args.seed, duration_s=args.duration, requests_per_s=args.rate)
    else:
        trace = load_trace(path, None if args.format == "auto" else TraceFormat(args.format))
    if not args.no_spread:
        trace = spread(trace)
    trace = with_shorter_outputs(limited(trace, args.limit), args.max_output)
    scenario = Scenario(
        trace=trace,
        fleet=fleet_of(args.hardware, args.instances, _profiles(args.profile, args.hardware)),
        observation=Observation(
            report_period_s=args.report_period,
            report_delay_s=args.report_delay,
            kv_event_delay_s=args.kv_event_delay,
            exact_queue=args.exact_queue,
        ),
        warmup=args.warmup,
        seed=args.seed,
    )
    if generated and args.limit is None and args.max_output is None:
        duration_s = args.duration or GENERATORS[args.trace].duration_s
        return GeneratedTraffic(scenario, args.trace, duration_s, args.rate)
    return RecordedTraffic(scenario)


def _profiles(files: Sequence[Path], hardware: str | None) -> dict[str, HardwareProfile]:
    """Return all profiles by their names, and those of files in ``hardware`` by the files' as well."""
    added = [read_profile(file) for file in files]
    named = [name for part in (hardware or "").split(",") if (name := part.partition(":")[0]).endswith(".json")]
    by_file = {name: read_profile(Path(name)) for name in named}
    return {**HARDWARE_PROFILES, **{profile.name: profile for profile in added}, **by_file}


def _find_saturation(setting: Setting, policies: Sequence[Policy], processes: int | None) -> dict[str, Saturation]:
    with _progress([f"saturation of {policy.name}" for policy in policies]) as on_progress:
        found = saturate_all(setting, policies, processes=processes, on_progress=on_progress)
    return {policy.name: saturation for policy, saturation in zip(policies, found, strict=True)}


def _run(setting: Setting, jobs: Sequence[Job], processes: int | None) -> list[RunReport]:
    with _progress([f"{job.policy.name} x{job.rate_scale:.3g}" for job in jobs]) as on_progress:
        return run_jobs(setting, jobs, processes=processes, on_progress=on_progress)


@contextmanager
def _progress(names: Sequence[str]) -> Iterator[OnProgress]:
    """Show a bar for each piece of work on standard error, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks = [progress.add_task(name, total=PERMILLE) for name in names]

        def update(permille: Sequence[int]) -> None:
            for task, done in zip(tasks, permille, strict=True):
                progress.update(task, completed=done)

        yield update


def _write(args: argparse.Namespace, comparison: Comparison) -> None:
    writers: dict[str, Callable[[], str]] = {
        "table": lambda: _table_text(comparison, args.to is None),
        "json": lambda: comparison_json(comparison).decode() + "\n",
        "html": lambda: comparison_html(comparison, _plotly_js(args.plotly_js)),
    }
    text = writers[args.output]()
    if args.to is None:
        sys.stdout.write(text)
    else:
        args.to.write_text(text, encoding="utf-8")


def _table_text(comparison: Comparison, to_terminal: bool) -> str:
    console = Console(width=None if to_terminal and sys.stdout.isatty() else 160)
    with console.capture() as capture:
        console.print(comparison_table(comparison))
    return capture.get()


def _plotly_js(path: Path | None) -> str:
    try:
        return bundled_plotly_js() if path is None else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: {error}") from error
