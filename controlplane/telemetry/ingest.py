"""The way in for snapshots."""

from controlplane.telemetry.hub import HUB
from router.snapshot import Snapshot


def ingest(snapshot: Snapshot) -> None:
    """Take one snapshot of a router worker; one that is older than what is held changes nothing.

    Call it in the event loop of the web process.
    """
    HUB.accept(snapshot)
