"""Short ways to say what routers reported."""

from controlplane.alerts.window import FleetFact, Window
from controlplane.telemetry.rollup import BUCKET_S, InstanceRollup, WorkerRollup, WorkloadRollup
from router.core.instance import InstanceState

END = 1_800_000_000


def instance(
    name: str, *, bs: float = 1, state: InstanceState = InstanceState.READY, **counts: object
) -> InstanceRollup:
    """One instance in one bucket of 40 samples, with ``bs`` requests throughout."""
    samples = 40
    facts: dict[str, object] = {
        "samples": samples,
        "bs_sum": int(bs * samples),
        "own_sum": int(bs * samples),
        "reported_sum": int(bs * samples),
        "reported_samples": samples,
        "youngest_report_age_s": 0.2,
    }
    return InstanceRollup(id=f"id-{name}", name=name, state=state, ejected=False, **(facts | counts))  # type: ignore[arg-type]


def rollup(
    *instances: InstanceRollup,
    worker: str = "router-0",
    ago: int = 1,
    workloads: tuple[WorkloadRollup, ...] = (),
    **facts: object,
) -> WorkerRollup:
    """What one worker reported in the bucket that is the ``ago``-th from the end."""
    return WorkerRollup(
        worker=worker,
        bucket=END - ago * BUCKET_S,
        snapshots=40,
        instances={row.id: row for row in instances},
        workloads={row.name: row for row in workloads},
        **facts,  # type: ignore[arg-type]
    )


def window(*rollups: WorkerRollup, **facts: object) -> Window:
    """A window that ends at ``END``."""
    return Window(end=END, rollups=sorted(rollups, key=lambda r: r.bucket), **facts)  # type: ignore[arg-type]


def fleet(*names: str, state: InstanceState = InstanceState.READY, has_metrics: bool = True) -> list[FleetFact]:
    """Registered instances."""
    return [FleetFact(f"id-{name}", name, state, "because", has_metrics) for name in names]
