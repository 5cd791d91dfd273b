"""A frame as a table of text: one line an instance, units in the names."""

import csv
from typing import Protocol

from controlplane.telemetry.frame import Frame, InstanceRow
from router.snapshot import Residency

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
_EVENTS = ("residency", "connected", "lag_s", "blocks", "losses", "check_error_blocks", "check_wrong_share")
_SPREADS = ("ttft_s", "score")
_QUANTILES = ("p50", "p95", "p99")
_RISKY = ("=", "+", "-", "@", "\t", "\r")


class Writable(Protocol):
    """Where the text goes."""

    def write(self, content: str, /) -> object: ...


def write_instances(target: Writable, frame: Frame) -> None:
    """Write a header and a line for each instance; what nobody said stays empty."""
    writer = csv.writer(target)
    spreads = (f"{spread}_{q}" for spread in _SPREADS for q in _QUANTILES)
    writer.writerow(["time_unix_s", *_PLAIN, *spreads, *(f"events_{name}" for name in _EVENTS)])
    for row in frame.instances:
        writer.writerow([frame.time_unix_s, *_cells(row)])


def _cells(row: InstanceRow) -> list[object]:
    plain = [_safe(getattr(row, name)) for name in _PLAIN]
    spreads = [getattr(getattr(row, spread), q) for spread in _SPREADS for q in _QUANTILES]
    events = [getattr(row.events, name) for name in _EVENTS]
    return plain + spreads + [value.value if isinstance(value, Residency) else value for value in events]


def _safe(value: object) -> object:
    """Keep a spreadsheet from reading a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_RISKY) else value
