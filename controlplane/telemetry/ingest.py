"""The way in for snapshots."""

from controlplane.telemetry.hub import hub
from router.snapshot import Snapshot


def ingest(snapshot: Snapshot) -> None:
    """Take one snapshot of a router worker; one that is older than what is held changes nothing.

    Call it in the event loop of the web process.
    """
    hub().accept(snapshot)
