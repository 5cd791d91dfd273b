"""What a worker is told of the others, so that all of them together keep to the tenants' quotas."""

from collections.abc import Iterable

from router.snapshot import OtherWorker, Snapshot, SnapshotAnswer


def others_of(snapshot: Snapshot, live: Iterable[Snapshot]) -> SnapshotAnswer:
    """Return what the other live workers have let in, for the worker that sent ``snapshot``."""
    return SnapshotAnswer(
        others=tuple(
            OtherWorker(
                worker=f"{other.worker}@{other.started_unix_s}",
                is_younger=other.started_unix_s > snapshot.started_unix_s,
                seq=other.seq,
                quotas=other.quotas,
            )
            for other in live
            if other.worker != snapshot.worker
        )
    )
