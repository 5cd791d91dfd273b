"""What reads rows of the slos app."""

from collections.abc import Iterable, Mapping

from django.db.models import Case, F, FloatField, QuerySet, Sum, Value, When
from django.utils import timezone

from controlplane.errors import NotFound
from controlplane.slos.attainment import WINDOWS_MINUTES, Sums, WindowAttainment, window_attainment
from controlplane.slos.models import Slo, SloMinute

_COUNTED = ("requests", "errors", "ttft_counted", "ttft_good", "tpot_counted", "tpot_good")


def slos() -> QuerySet[Slo]:
    """Return all SLOs with their workloads, by the workload's name."""
    return Slo.objects.select_related("workload").order_by("workload__name")


def slo_of(workload: str) -> Slo:
    """Return the SLO of a workload.

    :raises NotFound: when it has none.
    """
    slo = slos().filter(workload__name=workload).first()
    if slo is None:
        raise NotFound(f"Workload {workload} has no SLO.")
    return slo


def attainment_of(wanted: Iterable[Slo]) -> Mapping[int, list[WindowAttainment]]:
    """Return how far each SLO is met over each window, by the SLO's key, with one query for all."""
    listed = list(wanted)
    now = int(timezone.now().timestamp() // 60)
    sums = {
        f"{field}_{window}": Sum(
            Case(When(minute__gt=now - minutes - 1, then=F(field)), default=Value(0.0), output_field=FloatField())
        )
        for window, minutes in WINDOWS_MINUTES.items()
        for field in _COUNTED
    }
    oldest = now - max(WINDOWS_MINUTES.values()) - 1
    rows = SloMinute.objects.filter(slo__in=[slo.pk for slo in listed], minute__gt=oldest).order_by()
    summed = rows.values("slo_id").annotate(**sums).values_list("slo_id", *sums)
    found = {row[0]: dict(zip(sums, row[1:], strict=True)) for row in summed}
    return {slo.pk: _windows(slo, found.get(slo.pk, {})) for slo in listed}


def _windows(slo: Slo, row: Mapping[str, float]) -> list[WindowAttainment]:
    return [
        window_attainment(
            window,
            _sums(row, window, minutes),
            slo.ttft_percentile if slo.ttft_s is not None else None,
            slo.tpot_percentile if slo.tpot_s is not None else None,
        )
        for window, minutes in WINDOWS_MINUTES.items()
    ]


def _sums(row: Mapping[str, float], window: str, minutes: int) -> Sums:
    def whole(field: str) -> int:
        return int(row.get(f"{field}_{window}") or 0)

    return Sums(
        minutes=minutes,
        requests=whole("requests"),
        errors=whole("errors"),
        ttft_counted=whole("ttft_counted"),
        ttft_good=row.get(f"ttft_good_{window}") or 0.0,
        tpot_counted=whole("tpot_counted"),
        tpot_good=row.get(f"tpot_good_{window}") or 0.0,
    )
