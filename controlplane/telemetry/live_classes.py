"""The prefix classes that router workers report now, over all of them."""

from collections import defaultdict

import msgspec

from controlplane.telemetry.hub import hub
from router.snapshot import HotClassSample


class LiveClass(msgspec.Struct, frozen=True, kw_only=True):
    """One class in the sliding window of all live workers."""

    id: str
    model: str
    prefix_tokens: int
    requests: int
    share: float
    """Of all arrivals, 0..1."""
    holders: frozenset[str]
    """Ids of the ready instances that hold its prefix (M)."""
    ready: int
    """Ready instances (N)."""
    watched: bool
    mitigated: bool
    text_bytes: int
    """Of the text that is kept for preloading; 0: none is."""


def live_classes() -> list[LiveClass]:
    """Return the classes that live workers report, the most frequent first."""
    snapshots = hub().live_snapshots()
    arrivals = sum(snapshot.hot_arrivals for snapshot in snapshots)
    rows: dict[str, list[HotClassSample]] = defaultdict(list)
    for snapshot in snapshots:
        for sample in snapshot.hot_classes:
            rows[sample.id].append(sample)
    found = [_merged(samples, arrivals) for samples in rows.values()]
    return sorted(found, key=lambda one: (-one.requests, one.id))


def _merged(samples: list[HotClassSample], arrivals: int) -> LiveClass:
    first, requests = samples[0], sum(sample.requests for sample in samples)
    return LiveClass(
        id=first.id,
        model=first.model,
        prefix_tokens=first.prefix_tokens,
        requests=requests,
        share=requests / max(1, arrivals),
        holders=frozenset().union(*(sample.holders for sample in samples)),
        ready=max(sample.ready for sample in samples),
        watched=any(sample.watched for sample in samples),
        mitigated=any(sample.mitigated for sample in samples),
        text_bytes=max(sample.text_bytes for sample in samples),
    )
