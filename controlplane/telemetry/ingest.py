"""The way in for snapshots."""

from collections.abc import Sequence
from functools import cache

from django.db import connections

from controlplane.telemetry import rollups
from controlplane.telemetry.clock import SystemClock
from controlplane.telemetry.hub import hub
from controlplane.telemetry.rollup import WorkerRollup
from controlplane.telemetry.rollup_writer import Reach, RollupWriter, Urgent
from controlplane.telemetry.sharing.process import sharing
from router.snapshot import Snapshot

_urgencies: list[Urgent] = []


def write_early_when(urgent: Urgent) -> None:
    """Have roll-ups written early whenever ``urgent`` says that they cannot wait (see :data:`Urgent`)."""
    _urgencies.append(urgent)


async def ingest(snapshot: Snapshot, body: bytes) -> bool:
    """Take one snapshot that a router worker delivered to this process; return whether it is to be counted here.

    It is not, and changes nothing, when it is older than what is held, or was delivered to another web process before.

    :param body: the snapshot as it came.
    """
    taken = await sharing().offer(snapshot, body) and hub().accept(snapshot)
    if taken:
        rollup_writer().add(snapshot)
    return taken


async def write_rest() -> None:
    """Write what is being filled: this process ends."""
    await rollup_writer().finish()


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
