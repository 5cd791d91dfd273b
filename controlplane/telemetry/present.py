"""What router workers say now of each instance and each workload."""

from collections.abc import Mapping

from controlplane.telemetry.frame import InstanceRow, WorkloadRow
from controlplane.telemetry.hub import hub


def live_instances() -> Mapping[str, InstanceRow]:
    """Return the present row of every instance that a worker knows, by its id."""
    return {row.id: row for row in hub().newest_frame().instances}


def live_workloads() -> Mapping[str, WorkloadRow]:
    """Return the last minute of every workload that a worker knows, by its name."""
    return {row.name: row for row in hub().newest_frame().workloads}


def live_workers() -> int:
    """Return how many workers are heard now."""
    return sum(worker.live for worker in hub().newest_frame().workers)
