"""Data-parallel ranks: routers count each as an instance of its own, people register one engine.

A document names the ranks of an instance ``<id>#<rank>``; a snapshot that comes back has one sample for each. Here
these become one sample of the instance again, which keeps them: counts are added up, the fullest KV cache counts.
Each rank has a pace of its own, so the whole has none.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from controlplane.telemetry.merged_events import merge_events
from router.core.histogram import Counts
from router.snapshot import InstanceSample, Snapshot

_MARK = "#"
"""No name and no id of an instance has it."""
_SUMMED = (
    "bs",
    "running",
    "waiting",
    "own_requests",
    "queued_prefill_tokens",
    "prefix_blocks",
    "requests",
    "errors",
    "prompt_tokens",
    "predicted_hit_tokens",
    "reported_hit_tokens",
    "reported_prompt_tokens",
)
_REPORTED = ("reported_running", "reported_waiting")
_HISTOGRAMS = ("p_token", "score", "ttft_us", "tpot_us")


def rank_name(whole: str, rank: int) -> str:
    """Return the id or name of one rank of an instance."""
    return f"{whole}{_MARK}{rank}"


def whole_name(name: str) -> str:
    """Return the id or name of the instance that a rank belongs to, or that is meant anyway."""
    return name.partition(_MARK)[0]


def fold_ranks(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which the ranks of an engine are one instance, wherever it is named by its id."""
    if not any(_MARK in sample.id for sample in snapshot.instances):
        return snapshot
    by_id: dict[str, list[InstanceSample]] = {}
    for sample in snapshot.instances:
        by_id.setdefault(whole_name(sample.id), []).append(sample)
    return replace(
        snapshot,
        instances=tuple(_fold(identity, samples) for identity, samples in by_id.items()),
        chosen=tuple(replace(point, instance=whole_name(point.instance)) for point in snapshot.chosen),
        hot_classes=tuple(
            replace(one, holders=tuple(dict.fromkeys(map(whole_name, one.holders)))) for one in snapshot.hot_classes
        ),
    )


def _fold(identity: str, ranks: Sequence[InstanceSample]) -> InstanceSample:
    first = ranks[0]
    if _MARK not in first.id:
        return first
    events = replace(merge_events([rank.events for rank in ranks]), blocks=_total(rank.events.blocks for rank in ranks))
    return replace(
        first,
        id=identity,
        name=whole_name(first.name),
        ejected=all(rank.ejected for rank in ranks),
        kv_use=max((rank.kv_use for rank in ranks if rank.kv_use is not None), default=None),
        reported_age_s=max((rank.reported_age_s for rank in ranks if rank.reported_age_s is not None), default=None),
        events=events,
        pace=None,
        ranks=tuple(ranks),
        **{name: sum(getattr(rank, name) for rank in ranks) for name in _SUMMED},
        **{name: _total(getattr(rank, name) for rank in ranks) for name in _REPORTED},
        **{name: _added(getattr(rank, name) for rank in ranks) for name in _HISTOGRAMS},
    )


def _total(values: Iterable[int | None]) -> int | None:
    """Add up; None where anything is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _added(histograms: Iterable[Counts]) -> Counts:
    total: Counter[int] = Counter()
    for counts in histograms:
        total.update(counts)
    return dict(total)
