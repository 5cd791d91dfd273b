"""The past from roll-ups: the same numbers as the live minute, in wider columns, of a selection or of one instance."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

import msgspec

from controlplane.telemetry.rollup import BUCKET_S, InstanceRollup, WorkerRollup
from controlplane.telemetry.selection import EVERYTHING, Selection
from controlplane.telemetry.traffic import Traffic, of_rollup
from router.core.instance import ROUTABLE_STATES

MOST_COLUMNS = 90


class Lens(msgspec.Struct, frozen=True, kw_only=True):
    """Whose requests are counted: those of a selection, or of the instance of a name."""

    selection: Selection = EVERYTHING
    instance: str = ""

    def traffic(self, rollup: WorkerRollup) -> Iterator[Traffic]:
        """Return what counts of a roll-up."""
        if self.instance:
            return (of_rollup(row) for row in rollup.instances.values() if row.name == self.instance)
        if self.selection.workload:
            row = rollup.workloads.get(self.selection.workload)
            return iter(() if row is None else (of_rollup(row),))
        return map(of_rollup, self.compared(rollup))

    def compared(self, rollup: WorkerRollup) -> Iterator[InstanceRollup]:
        """Return the instances that a load is compared with: those that serve the selected model."""
        model = self.selection.model
        return (row for row in rollup.instances.values() if not model or not row.models or model in row.models)


class Stretch:
    """A span of time, added up."""

    def __init__(self, start_s: int, span_s: int) -> None:
        self.start_s = start_s
        self.span_s = span_s
        self.traffic = Traffic()
        self._loads: dict[str, dict[str, _Load]] = defaultdict(lambda: defaultdict(_Load))

    def add(self, rollup: WorkerRollup, lens: Lens) -> None:
        """Count one worker's roll-up in."""
        for traffic in lens.traffic(rollup):
            self.traffic.add(traffic)
        for row in lens.compared(rollup):
            if row.state in ROUTABLE_STATES and not row.ejected:
                self._loads[row.name][rollup.worker].add(row)

    def bs_means(self) -> Mapping[str, float]:
        """Return the mean BS of each instance that took requests, by name: own bookings of all workers added up, or
        the largest view of one worker, whichever is more (as the live table has it)."""
        return {
            name: max(sum(load.own_mean for load in loads.values()), *(load.bs_mean for load in loads.values()))
            for name, loads in self._loads.items()
        }

    def load_max_over_mean(self) -> float | None:
        """Return the largest mean BS over the mean of all; None without load."""
        means = self.bs_means().values()
        total = sum(means)
        return round(max(means) * len(means) / total, 3) if total else None

    def load_over_mean(self, name: str) -> float | None:
        """Return the mean BS of one instance over the mean of all; None without load."""
        means = self.bs_means()
        total = sum(means.values())
        return round(means[name] * len(means) / total, 3) if total and name in means else None


class _Load:
    """BS of one instance as one worker saw it, over some roll-ups."""

    __slots__ = ("bs_sum", "own_sum", "samples")

    def __init__(self) -> None:
        self.bs_sum = self.own_sum = self.samples = 0

    def add(self, row: InstanceRollup) -> None:
        self.bs_sum += row.bs_sum
        self.own_sum += row.own_sum
        self.samples += row.samples

    @property
    def own_mean(self) -> float:
        return self.own_sum / self.samples if self.samples else 0.0

    @property
    def bs_mean(self) -> float:
        return self.bs_sum / self.samples if self.samples else 0.0


def past_columns(rollups: Iterable[WorkerRollup], first_s: int, span_s: int, lens: Lens = Lens()) -> list[Stretch]:  # noqa: B008
    """Add roll-ups up into stretches of equal width, a multiple of a roll-up's; at most ``MOST_COLUMNS``, oldest first,
    those without traffic included."""
    width_s = ceil(span_s / BUCKET_S / MOST_COLUMNS) * BUCKET_S
    columns = [Stretch(at, width_s) for at in range(first_s, first_s + span_s, width_s)]
    for rollup in rollups:
        position = (rollup.bucket - first_s) // width_s
        if 0 <= position < len(columns):
            columns[position].add(rollup, lens)
    return columns
