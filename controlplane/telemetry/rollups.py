"""Roll-ups as rows: written by web processes, read by tasks; who is interested is told of new ones.

A roll-up whose time is not over yet may be written early, when it cannot wait; the whole one replaces it.
"""

import uuid
from collections.abc import Sequence

import msgspec
from django.dispatch import Signal

from controlplane.telemetry.models import RollupRow
from controlplane.telemetry.rollup import WorkerRollup

KEPT_S = 7_200
"""How long roll-ups stay."""
_WRITER = uuid.uuid4()
_written = Signal()
subscribe = _written.connect
_written_early = Signal()
subscribe_early = _written_early.connect


def write(rollups: Sequence[WorkerRollup]) -> None:
    """Keep the roll-ups of one bucket, let old ones go, and tell whoever subscribed."""
    _keep(rollups)
    newest = max(rollup.bucket for rollup in rollups)
    RollupRow.objects.filter(bucket__lt=newest - KEPT_S).delete()
    _written.send(sender=None)


def write_early(rollups: Sequence[WorkerRollup]) -> None:
    """Keep what there is of a bucket so far, and tell whoever cannot wait for the whole."""
    _keep(rollups)
    _written_early.send(sender=None)


def workers_heard_since(unix_s: float) -> frozenset[str]:
    """Return the names of the workers that any web process has heard since a moment, as far as roll-ups say."""
    return frozenset(RollupRow.objects.filter(bucket__gt=unix_s).values_list("worker", flat=True).distinct())


def newest_row() -> int:
    """Return a number that grows whenever a roll-up is written; 0 before the first."""
    return RollupRow.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def oldest_bucket() -> int | None:
    """Return the oldest bucket that is kept; None without any."""
    return RollupRow.objects.order_by("bucket").values_list("bucket", flat=True).first()


def read(first_bucket: int, last_bucket: int) -> list[WorkerRollup]:
    """Return the roll-ups of a span of buckets, both ends included, oldest first."""
    rows = RollupRow.objects.filter(bucket__gte=first_bucket, bucket__lte=last_bucket)
    bodies = rows.order_by("bucket", "worker").values_list("body", flat=True)
    return [msgspec.json.decode(bytes(body), type=WorkerRollup) for body in bodies]


def _keep(rollups: Sequence[WorkerRollup]) -> None:
    RollupRow.objects.bulk_create(
        [RollupRow(bucket=r.bucket, worker=r.worker, writer=_WRITER, body=msgspec.json.encode(r)) for r in rollups],
        update_conflicts=True,
        unique_fields=["bucket", "worker", "writer"],
        update_fields=["body"],
    )
