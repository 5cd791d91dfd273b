"""A log-spaced histogram with fixed buckets, so that histograms of many workers can be added.

Bucket ``i`` holds values in ``[2**(i/4), 2**((i+1)/4))``: four buckets an octave, 19 % wide. Values below 1 fall into
bucket 0, so durations are recorded in whole microseconds and scores as they are.
"""

from collections.abc import Iterable, Mapping
from math import log2
from typing import Final

BUCKETS_PER_OCTAVE: Final = 4

Counts = dict[int, int]
"""Sparse histogram: bucket index -> count."""


def bucket_of(value: float) -> int:
    """Return the bucket index of a non-negative value."""
    return int(log2(value) * BUCKETS_PER_OCTAVE) if value > 1 else 0


def lower_edge(bucket: int) -> float:
    """Return the smallest value that falls into ``bucket``."""
    return float(2 ** (bucket / BUCKETS_PER_OCTAVE))


def record(counts: Counts, value: float) -> None:
    """Count one value."""
    bucket = bucket_of(value)
    counts[bucket] = counts.get(bucket, 0) + 1


def merge(parts: Iterable[Mapping[int, int]]) -> Counts:
    """Add histograms bucket by bucket."""
    total: Counts = {}
    for part in parts:
        for bucket, count in part.items():
            total[bucket] = total.get(bucket, 0) + count
    return total


def quantile(counts: Mapping[int, int], q: float) -> float | None:
    """Return the q-quantile (0 <= q <= 1), interpolated inside its bucket on the log scale; None when empty."""
    total = sum(counts.values())
    if total == 0:
        return None
    rank = q * total
    seen = 0
    for bucket in sorted(counts):
        count = counts[bucket]
        if seen + count >= rank:
            fraction = (rank - seen) / count
            return float(2 ** ((bucket + fraction) / BUCKETS_PER_OCTAVE))
        seen += count
    return lower_edge(max(counts) + 1)
