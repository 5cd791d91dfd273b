"""Requests in flight at each instance, as live workers last said: own bookings, added up."""

from collections import Counter
from collections.abc import Mapping

from controlplane.telemetry.hub import hub


def in_flight_by_instance() -> Mapping[str, int]:
    """Return the requests at each instance, by its id; instances that no live worker knows are missing."""
    counts: Counter[str] = Counter()
    for snapshot in hub().live_snapshots():
        for sample in snapshot.instances:
            counts[sample.id] += sample.own_requests
    return counts
