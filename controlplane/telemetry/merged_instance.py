"""One instance as several workers see it, put together.

Workers book independently and all read the same engine reports, so requests are
``max(sum of own bookings, largest single view)``: the first is exact for our own traffic, the second holds what others
put on the instance. Queued prefill is booked by each worker apart and adds up. What an engine says of itself (KV use,
running, waiting) comes from the youngest report. Workers that have fallen silent count only where no live one knows the
instance; the row is then marked stale.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from controlplane.telemetry.merged_events import merge_events
from controlplane.telemetry.worker_book import Heard
from router.core.instance import ROUTABLE_STATES, InstanceState
from router.snapshot import EventsSample, InstanceSample


class Sighting(msgspec.Struct, frozen=True):
    """One worker's sample of an instance."""

    sample: InstanceSample
    config_revision: int
    age_s: float
    live: bool


class MergedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """The present of one instance; counts of requests, tokens and blocks, ages in seconds."""

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
    events: EventsSample
    models: tuple[str, ...]
    """Empty: any."""
    ranks: "tuple[MergedInstance, ...]" = ()
    """Its data-parallel ranks, where it has several."""

    @property
    def takes_requests(self) -> bool:
        """Whether a new request may go here."""
        return self.state in ROUTABLE_STATES and not self.ejected and not self.stale

    def serves(self, model: str) -> bool:
        """Return whether it answers to a model, as it is registered."""
        return not self.models or model in self.models


def merge_instances(heard: Iterable[Heard], now_s: float) -> tuple[MergedInstance, ...]:
    """Put the newest snapshots of all workers together; instances by name."""
    sightings = [
        Sighting(sample, one.snapshot.config_revision, one.age_s(now_s), one.is_live(now_s))
        for one in heard
        for sample in one.snapshot.instances
    ]
    return _merge_all(sightings)


def _merge_all(sightings: Iterable[Sighting]) -> tuple[MergedInstance, ...]:
    by_id: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        by_id[sighting.sample.id].append(sighting)
    return tuple(sorted((_merge(seen) for seen in _known(by_id)), key=lambda row: row.name))


def _known(sightings: dict[str, list[Sighting]]) -> Iterable[Sequence[Sighting]]:
    for seen in sightings.values():
        live = [sighting for sighting in seen if sighting.live]
        yield live or [min(seen, key=lambda sighting: sighting.age_s)]


def _merge(seen: Sequence[Sighting]) -> MergedInstance:
    newest = max(seen, key=lambda sighting: (sighting.config_revision, -sighting.age_s))
    youngest = min(seen, key=_report_age_s)
    samples = [sighting.sample for sighting in seen]
    report = youngest.sample
    return MergedInstance(
        id=newest.sample.id,
        name=newest.sample.name,
        state=newest.sample.state,
        ejected=any(sample.ejected for sample in samples),
        stale=not newest.live,
        age_s=round(min(sighting.age_s for sighting in seen), 2),
        reported_age_s=None if report.reported_age_s is None else round(_report_age_s(youngest), 2),
        bs=max(sum(sample.own_requests for sample in samples), *(sample.bs for sample in samples)),
        running=_told_or_summed(report.reported_running, [sample.running for sample in samples]),
        waiting=_told_or_summed(report.reported_waiting, [sample.waiting for sample in samples]),
        queued_prefill_tokens=sum(sample.queued_prefill_tokens for sample in samples),
        kv_use=report.kv_use,
        prefix_blocks=max(sample.prefix_blocks for sample in samples),
        events=merge_events([sample.events for sample in samples]),
        models=newest.sample.models,
        ranks=_merge_all(replace(sighting, sample=rank) for sighting in seen for rank in sighting.sample.ranks),
    )


def _report_age_s(sighting: Sighting) -> float:
    told_s = sighting.sample.reported_age_s
    return float("inf") if told_s is None else told_s + sighting.age_s


def _told_or_summed(told: int | None, own: Sequence[int]) -> int:
    return sum(own) if told is None else max(told, sum(own))
