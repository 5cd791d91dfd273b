"""Running the plan, and the document of everything that was measured."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from router.sim.metrics import RunSummary, Slo
from router.sim.policy_text import parse_policy
from router.sim.runner import Job, Setting, run_jobs, saturate_all
from router.sim.scenario import Scenario, fleet_of
from router.sim.sweep import Saturation
from router.sim.traces.generator import generate
from router.sim.traces.loading import load_trace
from router.sim.traces.transforms import spread
from router.sim.traffic import GeneratedTraffic, RecordedTraffic, Traffic
from tests.benchmarks.results import plan
from tests.benchmarks.results.plan import Case

PRECISION = 0.05
"""How close (relative) the saturation rates are found."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one case gave: saturation by policy (empty for a fixed rate), and the runs by share of the best one."""

    case: Case
    provenance: str
    saturation: dict[str, Saturation]
    runs: dict[str, list[RunSummary]]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document."""

    slo: Slo
    main: list[CaseResult]
    linear: list[CaseResult]
    past_saturation: list[CaseResult]
    thinking: CaseResult
    mixed: list[CaseResult]
    recorded: list[CaseResult]
    """Empty where the public traces are not at hand."""


class Laboratory:
    """Runs cases with the settings of the page, and says on standard error what it is at."""

    def __init__(self, traces: Path | None, processes: int | None) -> None:
        self._traces = traces
        self._processes = processes
        self._saturation: dict[tuple[str, str | None], dict[str, Saturation]] = {}

    def results(self) -> Results:
        """Run everything."""
        cases = plan.GENERATED
        return Results(
            slo=Slo(),
            main=[self.compare(case, plan.BASELINES, plan.SHARES) for case in cases],
            linear=[self.compare(case, ("multiplicative", *plan.LINEAR), (plan.MAIN_SHARE,)) for case in cases],
            past_saturation=[
                self.compare(case, ("multiplicative", "multiplicative:c=0.75", "marginal_delay"), past)
                for case, past in ((case, (plan.PAST_SATURATION,)) for case in cases)
            ],
            thinking=self.compare(plan.THINKING, plan.REAL, plan.SHARES),
            mixed=[
                self.compare(case, plan.MIXED, plan.SHARES, plan.MIXED_HARDWARE)
                for case in cases
                if case.title in plan.MIXED_CASES
            ],
            recorded=[self.compare(case, plan.REAL, plan.SHARES) for case in self._recorded()],
        )

    def compare(
        self, case: Case, policies: Sequence[str], shares: Iterable[float], hardware: str | None = None
    ) -> CaseResult:
        """Run policies on one case at shares of its best saturation rate, or at its fixed rate."""
        traffic = self._traffic(case, hardware)
        setting = Setting(traffic)
        saturation: dict[str, Saturation] = {}
        if case.fixed_scale is not None:
            scales = {"fixed": case.fixed_scale}
        else:
            saturation = self._saturate(case, setting, hardware)
            best = max(found.rate_scale for found in saturation.values())
            scales = {f"{share:.0%}": best * share for share in shares}
        jobs = [Job(parse_policy(policy), scale) for scale in scales.values() for policy in policies]
        _say(f"{case.title}: {len(jobs)} runs")
        reports = iter(run_jobs(setting, jobs, processes=self._processes))
        runs = {label: [next(reports).summary for _ in policies] for label in scales}
        provenance = traffic.at(1.0).trace.provenance
        return CaseResult(case=case, provenance=provenance, saturation=saturation, runs=runs)

    def _saturate(self, case: Case, setting: Setting, hardware: str | None) -> dict[str, Saturation]:
        key = (case.title, hardware)
        if key not in self._saturation:
            _say(f"{case.title}: saturation")
            policies = [parse_policy(policy) for policy in plan.CONTENDERS]
            setting = msgspec.structs.replace(setting, start_scale=case.start_scale, precision=PRECISION)
            found = saturate_all(setting, policies, processes=self._processes)
            self._saturation[key] = dict(zip(plan.CONTENDERS, found, strict=True))
        return self._saturation[key]

    def _traffic(self, case: Case, hardware: str | None) -> Traffic:
        fleet = fleet_of(hardware, case.instances)
        if case.origin is plan.Origin.GENERATED:
            trace = generate(case.source, duration_s=case.duration_s)
            scenario = Scenario(trace=trace, fleet=fleet)
            return GeneratedTraffic(scenario, case.source, case.duration_s or 0.0)
        trace = load_trace((self._traces or Path()) / case.source)
        return RecordedTraffic(Scenario(trace=spread(trace), fleet=fleet))

    def _recorded(self) -> list[Case]:
        cases = (plan.MOONCAKE, plan.CLAUDE, plan.AZURE)
        return [case for case in cases if self._traces is not None and (self._traces / case.source).exists()]


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
