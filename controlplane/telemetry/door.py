"""Who waits for room and who is inside now, by workload: the doors of all live workers together."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from router.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Door:
    """Requests by workload. ``inside`` has only workloads with a limit: of others nobody counts them."""

    queued: Mapping[str, int]
    inside: Mapping[str, int]


def door_of(snapshots: Iterable[Snapshot]) -> Door:
    """Add up what live workers say."""
    queued: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for snapshot in snapshots:
        for workload in snapshot.workloads:
            queued[workload.name] += workload.queued
            if workload.inside is not None:
                inside[workload.name] += workload.inside
    return Door(queued, dict(inside))
