"""The fleet's past, from roll-ups: the same numbers as the live minute, in wider columns."""

from collections.abc import Iterable
from math import ceil

import msgspec

from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup
from controlplane.telemetry.rollups import KEPT_S, read
from router.core.histogram import Counts

MOST_COLUMNS = 90


class PastColumn(msgspec.Struct, kw_only=True):
    """One span of time; ``start_s`` in Unix seconds."""

    start_s: int
    span_s: int
    requests: int = 0
    errors: int = 0
    score: Counts = msgspec.field(default_factory=dict)
    ttft_us: Counts = msgspec.field(default_factory=dict)


def read_past(minutes: int, now_unix_s: float) -> list[PastColumn]:
    """Return the last minutes in at most ``MOST_COLUMNS`` columns, oldest first, those without traffic included.

    :param minutes: 1 or more; no more than roll-ups are kept.
    """
    span_s = min(minutes * 60, KEPT_S)
    last = int(now_unix_s // BUCKET_S) * BUCKET_S - BUCKET_S
    first = last - span_s + BUCKET_S
    return past_columns(read(first, last), first, span_s)


def past_columns(rollups: Iterable[WorkerRollup], first_s: int, span_s: int) -> list[PastColumn]:
    """Add roll-ups up into columns of equal width, a multiple of a roll-up's."""
    width_s = ceil(span_s / BUCKET_S / MOST_COLUMNS) * BUCKET_S
    columns = [PastColumn(start_s=at, span_s=width_s) for at in range(first_s, first_s + span_s, width_s)]
    for rollup in rollups:
        position = (rollup.bucket - first_s) // width_s
        if 0 <= position < len(columns):
            _add(columns[position], rollup)
    return columns


def _add(column: PastColumn, rollup: WorkerRollup) -> None:
    for instance in rollup.instances.values():
        column.requests += instance.requests
        column.errors += instance.errors
        _add_counts(column.score, instance.score)
        _add_counts(column.ttft_us, instance.ttft_us)


def _add_counts(into: Counts, counts: Counts) -> None:
    for bucket, count in counts.items():
        into[bucket] = into.get(bucket, 0) + count
