"""A frame as a table of text: one line an instance, units in the names."""

import csv
from typing import Protocol

from controlplane.telemetry.frame import Frame, InstanceRow

_PLAIN = (
    "name",
    "state",
    "ejected",
    "stale",
    "bs",
    "running",
    "waiting",
    "queued_prefill_tokens",
    "kv_use",
    "prefix_blocks",
    "requests",
    "requests_per_s",
    "errors",
    "hit_ratio",
    "mean_new_tokens",
    "age_s",
    "reported_age_s",
)
_SPREADS = ("ttft_s", "score")
_QUANTILES = ("p50", "p95", "p99")
_RISKY = ("=", "+", "-", "@", "\t", "\r")


class Writable(Protocol):
    """Where the text goes."""

    def write(self, content: str, /) -> object: ...


def write_instances(target: Writable, frame: Frame) -> None:
    """Write a header and a line for each instance; what nobody said stays empty."""
    writer = csv.writer(target)
    writer.writerow(["time_unix_s", *_PLAIN, *(f"{spread}_{q}" for spread in _SPREADS for q in _QUANTILES)])
    for row in frame.instances:
        writer.writerow([frame.time_unix_s, *_cells(row)])


def _cells(row: InstanceRow) -> list[object]:
    plain = [_safe(getattr(row, name)) for name in _PLAIN]
    return plain + [getattr(getattr(row, spread), q) for spread in _SPREADS for q in _QUANTILES]


def _safe(value: object) -> object:
    """Keep a spreadsheet from reading a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_RISKY) else value
