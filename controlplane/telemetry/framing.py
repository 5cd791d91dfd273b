"""From live state to a frame."""

from collections.abc import Iterable, Mapping, Sequence

from controlplane.telemetry.frame import Column, Headline, InstanceRow, Spread, TrailPoint, WorkloadRow
from controlplane.telemetry.merged_instance import MergedInstance
from controlplane.telemetry.minute import Minute, WorkloadWindow
from controlplane.telemetry.traffic import Traffic, quantiles
from controlplane.telemetry.trail import Trail

MICROSECOND = 1e-6


def headline(minute: Minute, in_flight: int, now_s: float) -> Headline:
    """Return the fleet in a few numbers."""
    total = minute.fleet.total
    rate = minute.rate.per_second(now_s)
    return Headline(
        requests_per_s=None if rate is None else round(rate, 2),
        requests=total.requests,
        errors=total.errors,
        in_flight=in_flight,
        hit_ratio=_rounded(total.hit_ratio),
        hit_reported=total.reported_prompt_tokens > 0,
        ttft_s=_spread(total.ttft_us, MICROSECOND),
        tpot_s=_spread(total.tpot_us, MICROSECOND),
        score=_spread(total.score),
        load_max_over_mean=minute.load.max_over_mean(),
    )


def instance_rows(instances: Iterable[MergedInstance], minute: Minute, now_s: float) -> tuple[InstanceRow, ...]:
    """Return a row for each instance, in their order."""
    covered_s = minute.covered_s(now_s)
    return tuple(_instance_row(instance, minute.of_instance(instance.id), covered_s) for instance in instances)


def workload_rows(minute: Minute, now_s: float) -> tuple[WorkloadRow, ...]:
    """Return a row for each workload that had traffic, by name."""
    covered_s = minute.covered_s(now_s)
    return tuple(_workload_row(name, window, covered_s) for name, window in minute.of_workloads().items())


def trail_points(trail: Trail, instances: Sequence[MergedInstance], now_s: float) -> tuple[TrailPoint, ...]:
    """Return the last minute's choices, oldest first."""
    rows = {instance.id: position for position, instance in enumerate(instances)}
    return tuple(
        TrailPoint(rows.get(point.instance, -1), point.p_token, point.bs, round(age_s, 1))
        for age_s, point in trail.points(now_s)
    )


class ColumnMaker:
    """Makes the columns of a minute; a second that is over is made once."""

    def __init__(self) -> None:
        self._over: dict[int, Column] = {}

    def columns(self, minute: Minute, second: int) -> tuple[Column, ...]:
        """Return the seconds that had traffic, oldest first; ``second`` is the present one."""
        columns = [self._column(minute, at, traffic, second) for at, traffic in minute.fleet.cells()]
        self._over = {column.second: column for column in columns if column.second < second}
        return tuple(columns)

    def _column(self, minute: Minute, at: int, traffic: Traffic, second: int) -> Column:
        made = self._over.get(at) if at < second else None
        return made or Column(
            second=at,
            requests=traffic.requests,
            hit_ratio=_rounded(traffic.hit_ratio),
            ttft_s=_spread(traffic.ttft_us, MICROSECOND),
            tpot_s=_spread(traffic.tpot_us, MICROSECOND),
            score=_spread(traffic.score),
            score_counts=_flat(traffic.score),
            load_max_over_mean=minute.load.max_over_mean_at(at),
        )


def _instance_row(instance: MergedInstance, traffic: Traffic, covered_s: float) -> InstanceRow:
    return InstanceRow(
        id=instance.id,
        name=instance.name,
        state=instance.state,
        ejected=instance.ejected,
        stale=instance.stale,
        age_s=instance.age_s,
        reported_age_s=instance.reported_age_s,
        bs=instance.bs,
        running=instance.running,
        waiting=instance.waiting,
        queued_prefill_tokens=instance.queued_prefill_tokens,
        kv_use=_rounded(instance.kv_use),
        prefix_blocks=instance.prefix_blocks,
        requests=traffic.requests,
        requests_per_s=round(traffic.requests / covered_s, 2),
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        mean_new_tokens=_rounded(traffic.mean_new_tokens, 1),
        ttft_s=_spread(traffic.ttft_us, MICROSECOND),
        score=_spread(traffic.score),
        score_counts=_flat(traffic.score),
        events=instance.events,
    )


def _workload_row(name: str, window: WorkloadWindow, covered_s: float) -> WorkloadRow:
    traffic = window.traffic.total
    return WorkloadRow(
        name=name,
        policy=window.policy,
        requests=traffic.requests,
        requests_per_s=round(traffic.requests / covered_s, 2),
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        ttft_s=_spread(traffic.ttft_us, MICROSECOND),
        tpot_s=_spread(traffic.tpot_us, MICROSECOND),
        score=_spread(traffic.score),
        shadow_policy=window.shadow_policy,
        shadow_decisions=traffic.shadow_decisions,
        shadow_differs=traffic.shadow_differs,
    )


def _spread(counts: Mapping[int, int], unit: float = 1.0) -> Spread:
    return Spread(*quantiles(counts, 0.5, 0.95, 0.99, unit=unit))


def _flat(counts: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(number for bucket in sorted(counts) for number in (bucket, counts[bucket]))


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
