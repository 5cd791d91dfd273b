"""Counts of traffic over the last minute, in cells of one second.

A window keeps its total up to date by adding what arrives and subtracting what leaves, so reading it costs nothing
however many seconds and instances there are.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from controlplane.telemetry.rollup import InstanceRollup, WorkloadRollup
from router.core.histogram import Counts, quantile
from router.snapshot import InstanceSample, WorkloadSample

WINDOW_S = 60
Key = TypeVar("Key", int, str)


class Traffic(msgspec.Struct, kw_only=True):
    """What happened to one instance, workload or fleet in some span of time. Tokens and microseconds."""

    requests: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    predicted_hit_tokens: int = 0
    reported_hit_tokens: int = 0
    reported_prompt_tokens: int = 0
    shadow_decisions: int = 0
    shadow_differs: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Requests refused at the door, by reason."""
    p_token: Counts = msgspec.field(default_factory=dict)
    score: Counts = msgspec.field(default_factory=dict)
    ttft_us: Counts = msgspec.field(default_factory=dict)
    tpot_us: Counts = msgspec.field(default_factory=dict)

    def add(self, other: "Traffic") -> None:
        """Count ``other`` in."""
        self._shift(other, 1)

    def subtract(self, other: "Traffic") -> None:
        """Take out what was counted in before."""
        self._shift(other, -1)

    @property
    def hit_ratio(self) -> float | None:
        """Cached share of prompt tokens, 0..1: as engines reported it, else as predicted; None without requests."""
        if self.reported_prompt_tokens:
            return self.reported_hit_tokens / self.reported_prompt_tokens
        return self.predicted_hit_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def mean_new_tokens(self) -> float | None:
        """Tokens that a request had to prefill, on average; None without requests."""
        return (self.prompt_tokens - self.predicted_hit_tokens) / self.requests if self.requests else None

    def _shift(self, other: "Traffic", sign: int) -> None:
        self.requests += sign * other.requests
        self.errors += sign * other.errors
        self.prompt_tokens += sign * other.prompt_tokens
        self.predicted_hit_tokens += sign * other.predicted_hit_tokens
        self.reported_hit_tokens += sign * other.reported_hit_tokens
        self.reported_prompt_tokens += sign * other.reported_prompt_tokens
        self.shadow_decisions += sign * other.shadow_decisions
        self.shadow_differs += sign * other.shadow_differs
        _shift_counts(self.refused, other.refused, sign)
        _shift_counts(self.p_token, other.p_token, sign)
        _shift_counts(self.score, other.score, sign)
        _shift_counts(self.ttft_us, other.ttft_us, sign)
        _shift_counts(self.tpot_us, other.tpot_us, sign)


def of_instance(sample: InstanceSample) -> Traffic:
    """Return the traffic that one sample of an instance reports."""
    return Traffic(
        requests=sample.requests,
        errors=sample.errors,
        prompt_tokens=sample.prompt_tokens,
        predicted_hit_tokens=sample.predicted_hit_tokens,
        reported_hit_tokens=sample.reported_hit_tokens,
        reported_prompt_tokens=sample.reported_prompt_tokens,
        p_token=sample.p_token,
        score=sample.score,
        ttft_us=sample.ttft_us,
        tpot_us=sample.tpot_us,
    )


def of_workload(sample: WorkloadSample) -> Traffic:
    """Return the traffic that one sample of a workload reports; a workload has no P-token of its own."""
    return Traffic(
        requests=sample.requests,
        errors=sample.errors,
        prompt_tokens=sample.prompt_tokens,
        predicted_hit_tokens=sample.predicted_hit_tokens,
        reported_hit_tokens=sample.reported_hit_tokens,
        reported_prompt_tokens=sample.reported_prompt_tokens,
        shadow_decisions=sample.shadow_decisions,
        shadow_differs=sample.shadow_differs,
        refused=sample.refused,
        score=sample.score,
        ttft_us=sample.ttft_us,
        tpot_us=sample.tpot_us,
    )


def of_rollup(row: InstanceRollup | WorkloadRollup) -> Traffic:
    """Return the traffic that a roll-up of an instance or a workload tells of; counts are shared, not copied."""
    return Traffic(
        requests=row.requests,
        errors=row.errors,
        prompt_tokens=row.prompt_tokens,
        predicted_hit_tokens=row.predicted_hit_tokens,
        reported_hit_tokens=row.reported_hit_tokens,
        reported_prompt_tokens=row.reported_prompt_tokens,
        score=row.score,
        ttft_us=row.ttft_us,
        tpot_us=row.tpot_us,
    )


class TrafficWindow:
    """The traffic of the last ``WINDOW_S`` whole seconds, the present one included."""

    def __init__(self) -> None:
        self.total = Traffic()
        self._cells: deque[tuple[int, Traffic]] = deque()

    def add(self, second: int, traffic: Traffic) -> None:
        """Count traffic into a second, which is never before the last one."""
        self.advance(second)
        if not self._cells or self._cells[-1][0] != second:
            self._cells.append((second, Traffic()))
        self._cells[-1][1].add(traffic)
        self.total.add(traffic)

    def advance(self, second: int) -> None:
        """Let go of what is older than the window that ends with ``second``."""
        while self._cells and self._cells[0][0] <= second - WINDOW_S:
            self.total.subtract(self._cells.popleft()[1])

    @property
    def is_empty(self) -> bool:
        """Whether no second of the window was reported on."""
        return not self._cells

    def cells(self) -> Iterator[tuple[int, Traffic]]:
        """Return the seconds that had traffic, oldest first."""
        return iter(self._cells)

    def cell(self, second: int) -> Traffic | None:
        """Return what a second had; None where it had nothing."""
        return next((traffic for at, traffic in reversed(self._cells) if at == second), None)


def quantiles(counts: Mapping[int, int], *ranks: float, unit: float = 1.0) -> tuple[float | None, ...]:
    """Return quantiles of a histogram, multiplied by ``unit`` and rounded to what a reader can use (4 digits)."""
    values = (quantile(counts, rank) for rank in ranks)
    return tuple(None if value is None else float(f"{value * unit:.4g}") for value in values)


def _shift_counts(counts: dict[Key, int], other: Mapping[Key, int], sign: int) -> None:
    for key, count in other.items():
        moved = counts.get(key, 0) + sign * count
        if moved:
            counts[key] = moved
        else:
            counts.pop(key, None)
