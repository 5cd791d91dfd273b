"""How routers know what each instance's KV cache holds, as live workers last said."""

from collections import defaultdict
from collections.abc import Mapping

from controlplane.telemetry.hub import hub
from controlplane.telemetry.merged_events import merge_events
from router.snapshot import EventsSample


def residency_by_instance() -> Mapping[str, EventsSample]:
    """Return all workers' word together, by instance id; instances that no live worker knows are missing."""
    samples: defaultdict[str, list[EventsSample]] = defaultdict(list)
    for snapshot in hub().live_snapshots():
        for instance in snapshot.instances:
            samples[instance.id].append(instance.events)
    return {instance_id: merge_events(found) for instance_id, found in samples.items()}
