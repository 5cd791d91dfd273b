"""What router workers have learnt for a policy, as they say it now."""

from controlplane.telemetry.hub import hub
from router.snapshot import LearntSample


def learnt_by_worker(policy: str) -> list[tuple[str, LearntSample]]:
    """Return what each live worker has learnt for a policy, by the workers' names; revisions go on from one another."""
    return [
        (snapshot.worker, sample)
        for snapshot in hub().live_snapshots()
        for sample in snapshot.learnt
        if sample.policy.partition("@")[0] == policy
    ]
