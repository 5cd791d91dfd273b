"""Carrying out the order of a comparison."""

from collections.abc import Callable, Sequence

import msgspec

from controlplane.lab.child.order import Piece, Progress, SimulationOrder
from controlplane.lab.child.traffic import traffic_of
from router.sim.command import SWEEP_SHARES
from router.sim.parallel import OnProgress
from router.sim.report.comparison import Comparison, placement_of, provenance_of
from router.sim.runner import Job, Setting, run_jobs, saturate_all
from router.sim.sweep import Saturation

Tell = Callable[[Progress], None]


def compare(order: SimulationOrder, tell: Tell) -> Comparison:
    """Run every policy at every rate.

    :raises SimError: when the scenario cannot be run.
    """
    tell(Progress(phase="reading the trace"))
    traffic = traffic_of(order)
    setting = Setting(traffic, order.slo, keep_choices=order.placements)
    first = traffic.at(order.rate_scales[0])
    first.check()
    saturation: dict[str, Saturation] = {}
    scales: Sequence[float] = order.rate_scales
    if order.sweep:
        saturation = _saturation(order, setting, tell)
        best = max(found.rate_scale for found in saturation.values())
        scales = [best * share for share in SWEEP_SHARES]
    jobs = [Job(policy, scale) for scale in scales for policy in order.policies]
    names = [job.policy.name if len(scales) == 1 else f"{job.policy.name} ×{job.rate_scale:.3g}" for job in jobs]
    on_progress = _telling(tell, "running policies", names)
    runs = run_jobs(setting, jobs, processes=order.processes, on_progress=on_progress)
    placements = [placement_of(run.summary.policy, first.fleet, run.choices, runs[0].choices) for run in runs]
    return Comparison(
        provenance=provenance_of(first, order.slo),
        runs=tuple(msgspec.structs.replace(run, choices=[]) for run in runs),
        saturation=saturation,
        placements=tuple(placements) if order.placements else (),
    )


def _saturation(order: SimulationOrder, setting: Setting, tell: Tell) -> dict[str, Saturation]:
    names = [policy.name for policy in order.policies]
    on_progress = _telling(tell, "finding saturation", names)
    found = saturate_all(setting, order.policies, processes=order.processes, on_progress=on_progress)
    return dict(zip(names, found, strict=True))


def _telling(tell: Tell, phase: str, names: Sequence[str]) -> OnProgress:
    def told(permille: Sequence[int]) -> None:
        tell(Progress(phase=phase, pieces=tuple(map(Piece, names, permille))))

    told([0] * len(names))
    return told
