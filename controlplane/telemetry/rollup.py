"""Ten seconds of what one router worker reported, added up: the unit in which telemetry outlives a process.

Gauges are kept as sums over ``samples`` snapshots, so that means can be taken over any number of roll-ups; counters and
histograms cover the whole of the ten seconds.
"""

from collections.abc import Mapping

import msgspec

from router.core.histogram import Counts
from router.core.instance import InstanceState
from router.snapshot import HotClassSample, InstanceSample, Snapshot, WorkloadSample

BUCKET_S = 10


class InstanceRollup(msgspec.Struct, kw_only=True):
    """One instance, as one worker saw it."""

    id: str
    name: str
    state: InstanceState
    ejected: bool
    models: tuple[str, ...] = ()
    """What it served; empty: any."""
    samples: int = 0
    bs_sum: int = 0
    own_sum: int = 0
    """Requests booked by this worker."""
    queued_prefill_sum: int = 0
    reported_sum: int = 0
    """Running and waiting, as the engine reported them."""
    reported_samples: int = 0
    youngest_report_age_s: float | None = None
    """Age of the engine's own report when it was youngest; None when there was none."""
    requests: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    predicted_hit_tokens: int = 0
    reported_hit_tokens: int = 0
    reported_prompt_tokens: int = 0
    score: Counts = msgspec.field(default_factory=dict)
    ttft_us: Counts = msgspec.field(default_factory=dict)
    tpot_us: Counts = msgspec.field(default_factory=dict)
    checked: int = 0
    """Answers of which the hit predicted from KV events and the reported one were compared last."""
    check_wrong_share: float | None = None
    """Share of them that differed by more than a block."""
    check_error_blocks: float | None = None
    disbelieved: bool = False
    """Whether they differed so often that events are not believed."""


class WorkloadRollup(msgspec.Struct, kw_only=True):
    """One workload, as one worker saw it."""

    name: str
    policy: str
    requests: int = 0
    errors: int = 0
    above_cap: int = 0
    """Requests for which every instance was above the policy's P-token cap."""
    samples: int = 0
    waiting_sum: int = 0
    """Requests that waited for room, summed over the samples."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Requests refused at the door, by reason."""
    prompt_tokens: int = 0
    predicted_hit_tokens: int = 0
    reported_hit_tokens: int = 0
    reported_prompt_tokens: int = 0
    score: Counts = msgspec.field(default_factory=dict)
    ttft_us: Counts = msgspec.field(default_factory=dict)
    tpot_us: Counts = msgspec.field(default_factory=dict)
    e2e_us: Counts = msgspec.field(default_factory=dict)


class ClassRollup(msgspec.Struct, kw_only=True):
    """One prefix class, as one worker last reported it: arrivals of its sliding minute."""

    id: str
    model: str
    prefix_tokens: int
    requests: int
    holders: tuple[str, ...]
    """Ids of the ready instances that hold its prefix."""
    watched: bool
    mitigated: bool
    text_bytes: int = 0
    """Size of the text that the worker keeps for preloading."""


class TenantRollup(msgspec.Struct, kw_only=True):
    """What one tenant asked for."""

    name: str
    requests: int = 0
    refused: int = 0
    """Requests that a quota refused."""


class WorkerRollup(msgspec.Struct, kw_only=True):
    """Everything that one worker reported in one bucket."""

    worker: str
    bucket: int
    """Start, in seconds since the epoch; a multiple of ``BUCKET_S``."""
    config_revision: int = 0
    config_error: str | None = None
    snapshots: int = 0
    instances: dict[str, InstanceRollup] = msgspec.field(default_factory=dict)
    """By id."""
    workloads: dict[str, WorkloadRollup] = msgspec.field(default_factory=dict)
    """By name."""
    hot_arrivals: int = 0
    """Requests in the sliding minute that ``classes`` are about."""
    hot_window_whole: bool = True
    """Whether that minute was a whole one; shares of less say nothing."""
    classes: dict[str, ClassRollup] = msgspec.field(default_factory=dict)
    """By id."""
    tenants: dict[str, TenantRollup] = msgspec.field(default_factory=dict)
    """By name."""

    def add(self, snapshot: Snapshot) -> None:
        """Count a snapshot in."""
        self.snapshots += 1
        self.config_revision = snapshot.config_revision
        self.config_error = snapshot.config_error
        self.hot_arrivals = snapshot.hot_arrivals
        self.hot_window_whole = snapshot.hot_window_whole
        self.classes = {sample.id: _class_rollup(sample) for sample in snapshot.hot_classes}
        for tenant in snapshot.tenants:
            usage = self.tenants.setdefault(tenant.tenant, TenantRollup(name=tenant.tenant))
            usage.requests += tenant.requests
            usage.refused += tenant.refused
        for sample in snapshot.instances:
            row = self.instances.get(sample.id)
            if row is None:
                row = InstanceRollup(id=sample.id, name=sample.name, state=sample.state, ejected=sample.ejected)
                self.instances[sample.id] = row
            _add_instance(row, sample)
        for workload in snapshot.workloads:
            known = self.workloads.setdefault(workload.name, WorkloadRollup(name=workload.name, policy=workload.policy))
            _add_workload(known, workload)


def bucket_of_time(unix_s: float) -> int:
    """Return the start of the bucket that a moment falls into."""
    return int(unix_s // BUCKET_S) * BUCKET_S


def _add_instance(row: InstanceRollup, sample: InstanceSample) -> None:
    row.name, row.state, row.ejected, row.models = sample.name, sample.state, sample.ejected, sample.models
    row.samples += 1
    row.bs_sum += sample.bs
    row.own_sum += sample.own_requests
    row.queued_prefill_sum += sample.queued_prefill_tokens
    if sample.reported_running is not None:
        row.reported_sum += sample.reported_running + (sample.reported_waiting or 0)
        row.reported_samples += 1
    ages = [age for age in (row.youngest_report_age_s, sample.reported_age_s) if age is not None]
    row.youngest_report_age_s = min(ages) if ages else None
    row.checked, row.disbelieved = sample.events.checked, sample.events.disbelieved
    row.check_wrong_share, row.check_error_blocks = sample.events.check_wrong_share, sample.events.check_error_blocks
    row.requests += sample.requests
    row.errors += sample.errors
    row.prompt_tokens += sample.prompt_tokens
    row.predicted_hit_tokens += sample.predicted_hit_tokens
    row.reported_hit_tokens += sample.reported_hit_tokens
    row.reported_prompt_tokens += sample.reported_prompt_tokens
    for into, counts in ((row.score, sample.score), (row.ttft_us, sample.ttft_us), (row.tpot_us, sample.tpot_us)):
        _add_counts(into, counts)


def _add_workload(row: WorkloadRollup, sample: WorkloadSample) -> None:
    row.policy = sample.policy
    row.samples += 1
    row.waiting_sum += sample.queued
    row.above_cap += sample.above_cap
    for reason, count in sample.refused.items():
        row.refused[reason] = row.refused.get(reason, 0) + count
    row.requests += sample.requests
    row.errors += sample.errors
    row.prompt_tokens += sample.prompt_tokens
    row.predicted_hit_tokens += sample.predicted_hit_tokens
    row.reported_hit_tokens += sample.reported_hit_tokens
    row.reported_prompt_tokens += sample.reported_prompt_tokens
    for into, counts in (
        (row.score, sample.score),
        (row.ttft_us, sample.ttft_us),
        (row.tpot_us, sample.tpot_us),
        (row.e2e_us, sample.e2e_us),
    ):
        _add_counts(into, counts)


def _class_rollup(sample: HotClassSample) -> ClassRollup:
    return ClassRollup(
        id=sample.id,
        model=sample.model,
        prefix_tokens=sample.prefix_tokens,
        requests=max(0, sample.requests - sample.error),
        holders=sample.holders,
        watched=sample.watched,
        mitigated=sample.mitigated,
        text_bytes=sample.text_bytes,
    )


def _add_counts(into: Counts, counts: Mapping[int, int]) -> None:
    for bucket, count in counts.items():
        into[bucket] = into.get(bucket, 0) + count
