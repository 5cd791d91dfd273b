"""The way in for snapshots."""

from collections.abc import Sequence
from functools import cache

from django.db import connections

from controlplane.telemetry import rollups
from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.hub import hub
from controlplane.telemetry.rollup import WorkerRollup
from controlplane.telemetry.rollup_writer import Reach, RollupWriter, Urgent
from router.snapshot import Snapshot

_urgencies: list[Urgent] = []


def write_early_when(urgent: Urgent) -> None:
    """Have roll-ups written early whenever ``urgent`` says that they cannot wait (see :data:`Urgent`)."""
    _urgencies.append(urgent)


def ingest(snapshot: Snapshot) -> None:
    """Take one snapshot of a router worker; one that is older than what is held changes nothing.

    Call it in the event loop of the web process.
    """
    if hub().accept(snapshot):
        rollup_writer().add(snapshot)


@cache
def rollup_writer() -> RollupWriter:
    """Return the writer of this process."""
    return RollupWriter(SystemClock(), _write, _urgent)


def _urgent(filling: Sequence[WorkerRollup]) -> bool:
    return any(urgent(filling) for urgent in _urgencies)


def _write(rows: Sequence[WorkerRollup], reach: Reach) -> None:
    """Write in a thread that may never be used again: no connection is left open in it."""
    try:
        (rollups.write if reach is Reach.WHOLE else rollups.write_early)(rows)
    finally:
        connections.close_all()
