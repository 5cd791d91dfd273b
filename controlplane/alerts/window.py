"""What evaluators look at: the fleet as it is registered, and the last ten minutes of what routers reported.

Pure values. A :class:`Bucket` is ten seconds of all workers together; ``recent`` are those of the sliding minute. As
workers book independently and all read the same engine reports, own bookings add up while what an engine says of
itself does not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controlplane.telemetry.rollup import (
    BUCKET_S,
    ClassRollup,
    InstanceRollup,
    TenantRollup,
    WorkerRollup,
    WorkloadRollup,
)
from router.core.histogram import Counts, merge
from router.core.instance import ROUTABLE_STATES, InstanceState

WINDOW_S = 60
REFERENCE_S = 600
NEWEST_S = 20
"""How far back the newest roll-up of a worker that is alive may lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSpan:
    """One instance over some time; means are of requests or tokens at one moment."""

    id: str
    name: str
    takes_requests: bool
    """Throughout."""
    bs_mean: float = 0.0
    own_mean: float = 0.0
    reported_mean: float | None = None
    """Running and waiting as the engine said; None when it did not."""
    youngest_report_age_s: float | None = None
    requests: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    predicted_hit_tokens: int = 0
    reported_hit_tokens: int = 0
    reported_prompt_tokens: int = 0
    score: Counts = field(default_factory=dict)
    checked: int = 0
    """Answers of which hits predicted from KV events were compared last, by the worker that agreed least."""
    check_wrong_share: float | None = None
    check_error_blocks: float | None = None
    disbelieved: bool = False
    """Whether a worker does not believe its events at the end of the span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpan:
    """One workload over some time."""

    name: str
    policy: str
    """As it was last reported."""
    requests: int
    errors: int
    score: Counts
    above_cap: int = 0
    """Requests for which every instance was above the policy's P-token cap."""
    waiting_mean: float = 0.0
    """Requests that wait for room at one time, at all workers together."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Requests refused at the door, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpan:
    """One prefix class in the sliding minute: its requests of all arrivals, and the instances that hold its prefix."""

    id: str
    model: str
    prefix_tokens: int
    requests: int
    arrivals: int
    holders: frozenset[str]
    """Ids."""
    mitigated: bool = False
    """Whether a router keeps it away from its holders."""
    text_bytes: int = 0
    """Size of the text that a router keeps for preloading; 0 where none does."""


@dataclass(frozen=True, slots=True)
class TenantSpan:
    """What one tenant asked for over some time; ``refused`` by a quota, beside ``requests`` that were served."""

    name: str
    requests: int
    refused: int


@dataclass(frozen=True, slots=True)
class WorkerFact:
    """A router worker and the configuration that it ran in its newest roll-up."""

    name: str
    bucket: int
    config_revision: int
    config_error: str | None


@dataclass(frozen=True, slots=True)
class FleetFact:
    """An instance as it is registered."""

    id: str
    name: str
    state: InstanceState
    state_reason: str
    has_metrics: bool


@dataclass(frozen=True, slots=True)
class Published:
    """The newest configuration, and how long it has been there."""

    revision: int
    age_s: float


@dataclass(frozen=True, slots=True)
class SloBurn:
    """One target of a workload: how fast its error budget burns, by window, where anything was counted."""

    workload: str
    target: str
    requests: int
    """In the shortest window."""
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Everything that evaluators may know. ``rollups`` are ordered by bucket."""

    end: int
    """End of the newest bucket, in seconds since the epoch."""
    rollups: Sequence[WorkerRollup] = ()
    fleet: Sequence[FleetFact] = ()
    published: Published | None = None
    burns: Sequence[SloBurn] = ()

    def instances(self, span_s: int = WINDOW_S, before_s: int = 0) -> Mapping[str, InstanceSpan]:
        """Return each instance over ``span_s`` seconds that ended ``before_s`` seconds ago, by id."""
        by_id: dict[str, dict[str, list[InstanceRollup]]] = defaultdict(lambda: defaultdict(list))
        for rollup in self.span(span_s, before_s):
            for identity, row in rollup.instances.items():
                by_id[identity][rollup.worker].append(row)
        return {identity: _instance_span(by_worker) for identity, by_worker in sorted(by_id.items())}

    def workloads(self, span_s: int = WINDOW_S, before_s: int = 0) -> Mapping[str, WorkloadSpan]:
        """Return each workload over a span, by name."""
        by_name: dict[str, dict[str, list[WorkloadRollup]]] = defaultdict(lambda: defaultdict(list))
        for rollup in self.span(span_s, before_s):
            for name, row in rollup.workloads.items():
                by_name[name][rollup.worker].append(row)
        return {name: _workload_span(name, by_worker) for name, by_worker in sorted(by_name.items())}

    def classes(self) -> Sequence[ClassSpan]:
        """Return the prefix classes of the sliding minute, largest first, over all workers that saw a whole one."""
        newest = {rollup.worker: rollup for rollup in self.span(NEWEST_S) if rollup.hot_window_whole}
        rows: dict[str, list[ClassRollup]] = defaultdict(list)
        for rollup in newest.values():
            for identity, row in rollup.classes.items():
                rows[identity].append(row)
        arrivals = sum(rollup.hot_arrivals for rollup in newest.values())
        spans = [
            ClassSpan(
                id=identity,
                model=found[0].model,
                prefix_tokens=found[0].prefix_tokens,
                requests=sum(row.requests for row in found),
                arrivals=arrivals,
                holders=frozenset().union(*(row.holders for row in found)),
                mitigated=any(row.mitigated for row in found),
                text_bytes=max(row.text_bytes for row in found),
            )
            for identity, found in rows.items()
        ]
        return sorted(spans, key=lambda span: (-span.requests, span.id))

    def ready(self, span_s: int = NEWEST_S) -> frozenset[str]:
        """Return the ids of the instances that took requests throughout a span."""
        seen: set[str] = set()
        missed: set[str] = set()
        for rollup in self.span(span_s):
            for identity, row in rollup.instances.items():
                (seen if _takes_requests(row) else missed).add(identity)
        return frozenset(seen - missed)

    def tenants(self, span_s: int = WINDOW_S) -> Mapping[str, TenantSpan]:
        """Return what each tenant asked for in a span, by name."""
        by_name: dict[str, list[TenantRollup]] = defaultdict(list)
        for rollup in self.span(span_s):
            for name, row in rollup.tenants.items():
                by_name[name].append(row)
        return {
            name: TenantSpan(name, sum(row.requests for row in rows), sum(row.refused for row in rows))
            for name, rows in sorted(by_name.items())
        }

    def workers(self) -> Sequence[WorkerFact]:
        """Return every worker of the last ten minutes as it was last heard, by name."""
        newest = {rollup.worker: rollup for rollup in self.rollups}
        return [
            WorkerFact(name, rollup.bucket, rollup.config_revision, rollup.config_error)
            for name, rollup in sorted(newest.items())
        ]

    def span(self, span_s: int, before_s: int = 0) -> Iterable[WorkerRollup]:
        """Return the roll-ups of a span."""
        end = self.end - before_s
        return (rollup for rollup in self.rollups if end - span_s <= rollup.bucket < end)

    @property
    def covered_s(self) -> int:
        """How far back roll-ups reach, in seconds."""
        return max((self.end - rollup.bucket for rollup in self.rollups), default=0)


def newest_end(now_unix_s: float) -> int:
    """Return the end of the newest bucket that is over."""
    return int(now_unix_s // BUCKET_S) * BUCKET_S


def _instance_span(by_worker: Mapping[str, Sequence[InstanceRollup]]) -> InstanceSpan:
    rows = [row for group in by_worker.values() for row in group]
    groups = list(by_worker.values())
    own_mean = sum(_mean(sum(r.own_sum for r in g), sum(r.samples for r in g)) or 0.0 for g in groups)
    largest = max(_mean(sum(r.bs_sum for r in g), sum(r.samples for r in g)) or 0.0 for g in groups)
    newest = [group[-1] for group in groups]
    worst = max(newest, key=lambda row: row.check_wrong_share or 0.0)
    ages = [row.youngest_report_age_s for row in rows if row.youngest_report_age_s is not None]
    return InstanceSpan(
        id=rows[-1].id,
        name=rows[-1].name,
        takes_requests=all(map(_takes_requests, rows)),
        bs_mean=max(own_mean, largest),
        own_mean=own_mean,
        reported_mean=_mean(sum(r.reported_sum for r in rows), sum(r.reported_samples for r in rows)),
        youngest_report_age_s=min(ages) if ages else None,
        requests=sum(row.requests for row in rows),
        errors=sum(row.errors for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        predicted_hit_tokens=sum(row.predicted_hit_tokens for row in rows),
        reported_hit_tokens=sum(row.reported_hit_tokens for row in rows),
        reported_prompt_tokens=sum(row.reported_prompt_tokens for row in rows),
        score=merge(row.score for row in rows),
        checked=worst.checked,
        check_wrong_share=worst.check_wrong_share,
        check_error_blocks=worst.check_error_blocks,
        disbelieved=any(row.disbelieved for row in newest),
    )


def _workload_span(name: str, by_worker: Mapping[str, Sequence[WorkloadRollup]]) -> WorkloadSpan:
    rows = [row for group in by_worker.values() for row in group]
    waiting = (_mean(sum(r.waiting_sum for r in g), sum(r.samples for r in g)) or 0.0 for g in by_worker.values())
    refused: Counter[str] = Counter()
    for row in rows:
        refused.update(row.refused)
    return WorkloadSpan(
        name=name,
        policy=rows[-1].policy,
        requests=sum(row.requests for row in rows),
        errors=sum(row.errors for row in rows),
        score=merge(row.score for row in rows),
        above_cap=sum(row.above_cap for row in rows),
        waiting_mean=sum(waiting),
        refused=dict(refused),
    )


def _takes_requests(row: InstanceRollup) -> bool:
    return row.state in ROUTABLE_STATES and not row.ejected


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None
