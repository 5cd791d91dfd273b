"""What a browser gets: one self-contained picture of the moment and the minute before it.

Every frame is whole, so a browser may miss any number of them. Ages are seconds, durations seconds, ratios shares of 1.
``None`` means "nobody said", which is never the same as zero.
"""

import msgspec

from controlplane.telemetry.selection import Selection
from controlplane.telemetry.worker_book import WorkerStatus
from router.core.instance import InstanceState
from router.snapshot import DecisionSample, EventsSample


class Spread(msgspec.Struct, frozen=True):
    """Quantiles of a distribution; all None when it is empty."""

    p50: float | None
    p95: float | None
    p99: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """What is selected in a few numbers, over the last minute unless said otherwise."""

    requests_per_s: float | None
    """Over the last ten seconds."""
    requests: int
    errors: int
    in_flight: int
    """Requests that live workers hold now, whatever is selected."""
    hit_ratio: float | None
    hit_reported: bool
    """Whether engines reported the hits; else they are the router's prediction."""
    ttft_s: Spread
    tpot_s: Spread
    score: Spread
    load_max_over_mean: float | None
    """Largest mean BS of an instance over the mean of all that take requests."""


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """One data-parallel rank of an instance now."""

    name: str
    ejected: bool
    bs: int
    running: int
    waiting: int
    queued_prefill_tokens: int
    kv_use: float | None
    prefix_blocks: int
    events: EventsSample


class InstanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One instance now, and its last minute."""

    id: str
    name: str
    state: InstanceState
    ejected: bool
    stale: bool
    age_s: float
    reported_age_s: float | None
    bs: int
    running: int
    waiting: int
    queued_prefill_tokens: int
    kv_use: float | None
    prefix_blocks: int
    models: tuple[str, ...]
    """What it is registered to serve; empty: any."""
    requests: int
    requests_per_s: float
    errors: int
    hit_ratio: float | None
    mean_new_tokens: float | None
    ttft_s: Spread
    score: Spread
    score_counts: tuple[int, ...]
    """Histogram of P-token x BS: bucket, count, bucket, count, ..."""
    events: EventsSample
    """How it is known what its KV cache holds."""
    bs_course: tuple[int | None, ...]
    """BS over the minute, oldest first, at even steps."""
    ranks: tuple[RankRow, ...] = ()
    """Its data-parallel ranks, where it has several."""


class WorkloadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload over the last minute."""

    name: str
    policy: str
    requests: int
    requests_per_s: float
    errors: int
    hit_ratio: float | None
    ttft_s: Spread
    tpot_s: Spread
    score: Spread
    shadow_policy: str | None
    """The policy that decided as well, without being obeyed; None without one."""
    shadow_decisions: int
    shadow_differs: int
    """Of these, how many chose another instance."""
    queued: int
    """Requests that wait for room now, in all live workers."""
    inside: int | None
    """Requests being served now that count towards the limit; None where there is none."""
    refused: dict[str, int]
    """Requests refused at the door, by reason."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One second of the last minute of what is selected."""

    second: int
    """Grows by one a second; the present one is ``Frame.second``."""
    requests: int
    hit_ratio: float | None
    ttft_s: Spread
    tpot_s: Spread
    score: Spread
    score_counts: tuple[int, ...]
    load_max_over_mean: float | None


class TrailPoint(msgspec.Struct, frozen=True, array_like=True):
    """Where a request of the last minute went; ``row`` points into ``Frame.instances``, -1 when it is gone."""

    row: int
    p_token: int
    bs: int
    age_s: float


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The whole picture."""

    seq: int
    time_unix_s: float
    second: int
    window_s: int
    selection: Selection
    models: tuple[str, ...]
    """All that are served, by name."""
    headline: Headline
    instances: tuple[InstanceRow, ...]
    """Those that serve the selected model; their numbers are of all workloads."""
    workloads: tuple[WorkloadRow, ...]
    """All of them, whatever is selected."""
    columns: tuple[Column, ...]
    trail: tuple[TrailPoint, ...]
    decision: DecisionSample | None
    """The newest decision that a worker explained, of what is selected."""
    workers: tuple[WorkerStatus, ...]
    whole: bool
    """Whether these are all: False while other web processes are not heard."""
