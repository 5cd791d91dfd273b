"""Which router worker runs which configuration revision."""

from controlplane.telemetry.hub import hub
from controlplane.telemetry.worker_book import WorkerStatus


def worker_statuses() -> tuple[WorkerStatus, ...]:
    """Return every worker heard in the last ten minutes, by name, with the age of what it said."""
    return hub().worker_statuses()
