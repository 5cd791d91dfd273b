"""What the numbers of a selection are counted from: the fleet, one workload, or the instances that serve a model."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from controlplane.telemetry.merged_instance import MergedInstance
from controlplane.telemetry.minute import InstanceWindow, Minute
from controlplane.telemetry.selection import Selection
from controlplane.telemetry.traffic import Traffic, TrafficWindow


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The last minute of a selection."""

    total: Traffic
    requests_per_s: float | None
    seconds: tuple[int, ...]
    """Those that were reported on, oldest first."""
    traffic_at: Callable[[int], Traffic]
    """The traffic of one of ``seconds``."""
    instance_ids: frozenset[str] | None
    """The instances whose load is compared; None: all."""


def scope_of(minute: Minute, selection: Selection, instances: Sequence[MergedInstance], now_s: float) -> Scope:
    """Return what a selection is counted from.

    :param instances: those that serve the selected model.
    """
    ids = frozenset(instance.id for instance in instances) if selection.model else None
    if selection.workload:
        window = minute.workload_window(selection.workload)
        return _of_window(window.traffic, window.rate.per_second(now_s), ids)
    if ids is None:
        return _of_window(minute.fleet, minute.rate.per_second(now_s), None)
    return _of_instances(minute, ids, now_s)


def _of_window(window: TrafficWindow, requests_per_s: float | None, ids: frozenset[str] | None) -> Scope:
    cells = dict(window.cells())
    return Scope(
        total=window.total,
        requests_per_s=requests_per_s,
        seconds=tuple(cells),
        traffic_at=cells.__getitem__,
        instance_ids=ids,
    )


def _of_instances(minute: Minute, ids: frozenset[str], now_s: float) -> Scope:
    windows = list(_windows(minute, ids))
    rates = [rate for window in windows if (rate := window.rate.per_second(now_s)) is not None]
    return Scope(
        total=_sum(window.traffic.total for window in windows),
        requests_per_s=sum(rates) if rates else None,
        seconds=tuple(second for second, _ in minute.fleet.cells()),
        traffic_at=lambda second: _sum(cell for w in windows if (cell := w.traffic.cell(second)) is not None),
        instance_ids=ids,
    )


def _windows(minute: Minute, ids: frozenset[str]) -> Iterator[InstanceWindow]:
    return (window for identity in sorted(ids) if (window := minute.instance_window(identity)) is not None)


def _sum(parts: Iterator[Traffic]) -> Traffic:
    total = Traffic()
    for part in parts:
        total.add(part)
    return total
