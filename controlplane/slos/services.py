"""What changes rows of the slos app."""

from collections import defaultdict
from dataclasses import asdict
from datetime import timedelta
from math import isfinite
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import Invalid, NotFound
from controlplane.policies.selectors import workload_named
from controlplane.slos.counting import Targets, count
from controlplane.slos.models import Slo, SloMinute
from controlplane.telemetry import rollups

_MOST_S = 3_600.0
_SETTLED_AFTER = timedelta(seconds=20)
"""A minute is counted once every web process has surely written its roll-ups."""
_KEPT_MINUTES = 31 * 24 * 60
_MOST_CAUGHT_UP_MINUTES = rollups.KEPT_S // 60


@transaction.atomic
def put_slo(*, actor: Actor, workload: str, **settings: Any) -> tuple[Slo, bool]:
    """Give a workload these targets (``ttft_s``, ``ttft_percentile``, ``tpot_s``, ``tpot_percentile``).

    :raises Invalid: for targets that cannot be, or none.
    :raises NotFound: when there is no such workload.
    """
    _check(settings)
    owner = workload_named(workload)
    slo = Slo.objects.select_for_update().filter(workload=owner).first()
    before = None if slo is None else describe(slo)
    slo, created = Slo.objects.update_or_create(workload=owner, defaults=settings)
    after = describe(slo)
    if after != before:
        target = ("slo", slo.pk, workload)
        record(actor=actor, action="slo.create" if created else "slo.change", target=target, before=before, after=after)
    return slo, created


@transaction.atomic
def delete_slo(*, actor: Actor, workload: str) -> None:
    """Take the targets of a workload away.

    :raises NotFound: when it has none.
    """
    slo = Slo.objects.filter(workload__name=workload).first()
    if slo is None:
        raise NotFound(f"Workload {workload} has no SLO.")
    target, before = ("slo", slo.pk, workload), describe(slo)
    slo.delete()
    record(actor=actor, action="slo.delete", target=target, before=before)


def count_minutes() -> int:
    """Count every whole minute that is not counted yet; return how many rows were written.

    A minute that was missed (nobody ran tasks) is made up for as long as its roll-ups are kept.
    """
    last = int((timezone.now() - _SETTLED_AFTER).timestamp() // 60) - 1
    written = 0
    for slo in Slo.objects.select_related("workload"):
        newest = slo.minutes.order_by("-minute").values_list("minute", flat=True).first()
        first = max(last - _MOST_CAUGHT_UP_MINUTES + 1, 0 if newest is None else newest + 1)
        written += _count_span(slo, first, last) if first <= last else 0
    SloMinute.objects.filter(minute__lt=last - _KEPT_MINUTES).delete()
    return written


def describe(slo: Slo) -> dict[str, Any]:
    """Return what the audit log keeps."""
    return {
        "ttft_s": slo.ttft_s,
        "ttft_percentile": slo.ttft_percentile,
        "tpot_s": slo.tpot_s,
        "tpot_percentile": slo.tpot_percentile,
    }


def _count_span(slo: Slo, first: int, last: int) -> int:
    by_minute = defaultdict(list)
    for rollup in rollups.read(first * 60, last * 60 + 59):
        by_minute[rollup.bucket // 60].append(rollup)
    targets = Targets(slo.ttft_s, slo.tpot_s)
    counts = {minute: count(slo.workload.name, by_minute[minute], targets) for minute in by_minute}
    rows = [SloMinute(slo=slo, minute=minute, **asdict(found)) for minute, found in sorted(counts.items())]
    SloMinute.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _check(settings: dict[str, Any]) -> None:
    faults = {}
    for name in ("ttft_s", "tpot_s"):
        value = settings.get(name)
        if value is not None and not (isfinite(value) and 0 < value <= _MOST_S):
            faults[name] = [f"It must be above 0 and at most {_MOST_S:g} seconds."]
    for name in ("ttft_percentile", "tpot_percentile"):
        value = settings.get(name)
        if value is not None and not (isfinite(value) and 0 < value < 100):
            faults[name] = ["It must be above 0 and below 100 percent."]
    if settings.get("ttft_s") is None and settings.get("tpot_s") is None:
        faults["ttft_s"] = ["Set a target for TTFT (ttft_s), for TPOT (tpot_s), or for both."]
    if faults:
        raise Invalid(faults)
