"""From live state to a frame."""

from collections.abc import Iterable, Mapping, Sequence

from controlplane.telemetry.door import Door
from controlplane.telemetry.frame import Column, Headline, InstanceRow, RankRow, Spread, TrailPoint, WorkloadRow
from controlplane.telemetry.merged_instance import MergedInstance
from controlplane.telemetry.minute import Minute, WorkloadWindow
from controlplane.telemetry.scope import Scope
from controlplane.telemetry.selection import Selection
from controlplane.telemetry.traffic import Traffic, quantiles
from controlplane.telemetry.trail import Trail

MICROSECOND = 1e-6


def headline(minute: Minute, scope: Scope, in_flight: int) -> Headline:
    """Return a selection in a few numbers."""
    total = scope.total
    return Headline(
        requests_per_s=_rounded(scope.requests_per_s, 2),
        requests=total.requests,
        errors=total.errors,
        in_flight=in_flight,
        hit_ratio=_rounded(total.hit_ratio),
        hit_reported=total.reported_prompt_tokens > 0,
        ttft_s=spread(total.ttft_us, MICROSECOND),
        tpot_s=spread(total.tpot_us, MICROSECOND),
        score=spread(total.score),
        load_max_over_mean=minute.load.max_over_mean(scope.instance_ids),
    )


def instance_rows(instances: Iterable[MergedInstance], minute: Minute, now_s: float) -> tuple[InstanceRow, ...]:
    """Return a row for each instance, in their order."""
    covered_s, second = minute.covered_s(now_s), int(now_s)
    return tuple(
        _instance_row(one, minute.of_instance(one.id), covered_s, minute.load.course(one.id, second))
        for one in instances
    )


def workload_rows(minute: Minute, door: Door, now_s: float) -> tuple[WorkloadRow, ...]:
    """Return a row for each workload that had traffic, by name."""
    covered_s = minute.covered_s(now_s)
    return tuple(_workload_row(name, window, door, covered_s) for name, window in minute.of_workloads().items())


def trail_points(
    trail: Trail, instances: Sequence[MergedInstance], selection: Selection, now_s: float
) -> tuple[TrailPoint, ...]:
    """Return the last minute's choices, oldest first."""
    rows = {instance.id: position for position, instance in enumerate(instances)}
    return tuple(
        TrailPoint(rows.get(point.instance, -1), point.p_token, point.bs, round(age_s, 1))
        for age_s, point in trail.points(now_s)
        if selection.workload in ("", point.workload) and (not selection.model or point.instance in rows)
    )


class ColumnMaker:
    """Makes the columns of a minute; a second that is over is made once."""

    def __init__(self) -> None:
        self._over: dict[int, Column] = {}
        self._instance_ids: frozenset[str] | None = None

    def columns(self, minute: Minute, scope: Scope, second: int) -> tuple[Column, ...]:
        """Return the seconds that had traffic, oldest first; ``second`` is the present one."""
        if scope.instance_ids != self._instance_ids:
            self._over, self._instance_ids = {}, scope.instance_ids
        columns = [(at < second and self._over.get(at)) or _column(minute, scope, at) for at in scope.seconds]
        self._over = {column.second: column for column in columns if column.second < second}
        return tuple(columns)


def _column(minute: Minute, scope: Scope, at: int) -> Column:
    traffic = scope.traffic_at(at)
    return Column(
        second=at,
        requests=traffic.requests,
        hit_ratio=_rounded(traffic.hit_ratio),
        ttft_s=spread(traffic.ttft_us, MICROSECOND),
        tpot_s=spread(traffic.tpot_us, MICROSECOND),
        score=spread(traffic.score),
        score_counts=flat(traffic.score),
        load_max_over_mean=minute.load.max_over_mean_at(at, scope.instance_ids),
    )


def _instance_row(
    instance: MergedInstance, traffic: Traffic, covered_s: float, bs_course: tuple[int | None, ...]
) -> InstanceRow:
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
        models=instance.models,
        requests=traffic.requests,
        requests_per_s=round(traffic.requests / covered_s, 2),
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        mean_new_tokens=_rounded(traffic.mean_new_tokens, 1),
        ttft_s=spread(traffic.ttft_us, MICROSECOND),
        score=spread(traffic.score),
        score_counts=flat(traffic.score),
        bs_course=bs_course,
        events=instance.events,
        ranks=tuple(map(_rank_row, instance.ranks)),
    )


def _rank_row(rank: MergedInstance) -> RankRow:
    return RankRow(
        name=rank.name,
        ejected=rank.ejected,
        bs=rank.bs,
        running=rank.running,
        waiting=rank.waiting,
        queued_prefill_tokens=rank.queued_prefill_tokens,
        kv_use=_rounded(rank.kv_use),
        prefix_blocks=rank.prefix_blocks,
        events=rank.events,
    )


def _workload_row(name: str, window: WorkloadWindow, door: Door, covered_s: float) -> WorkloadRow:
    traffic = window.traffic.total
    return WorkloadRow(
        name=name,
        policy=window.policy,
        requests=traffic.requests,
        requests_per_s=round(traffic.requests / covered_s, 2),
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        ttft_s=spread(traffic.ttft_us, MICROSECOND),
        tpot_s=spread(traffic.tpot_us, MICROSECOND),
        score=spread(traffic.score),
        shadow_policy=window.shadow_policy,
        shadow_decisions=traffic.shadow_decisions,
        shadow_differs=traffic.shadow_differs,
        queued=door.queued.get(name, 0),
        inside=door.inside.get(name),
        refused=dict(traffic.refused),
    )


def spread(counts: Mapping[int, int], unit: float = 1.0) -> Spread:
    """Return the quantiles of a histogram, in ``unit``."""
    return Spread(*quantiles(counts, 0.5, 0.95, 0.99, unit=unit))


def flat(counts: Mapping[int, int]) -> tuple[int, ...]:
    """Return a histogram as bucket, count, bucket, count, ..."""
    return tuple(number for bucket in sorted(counts) for number in (bucket, counts[bucket]))


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
