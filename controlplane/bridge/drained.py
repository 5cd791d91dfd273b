"""From draining to drained: when every worker says that it has nothing in flight there."""

import logging

from controlplane.fleet.services.moves import mark_idle
from controlplane.telemetry.hub import hub
from controlplane.telemetry.sharing.process import sharing
from router.core.instance import InstanceState
from router.snapshot import Snapshot

logger = logging.getLogger(__name__)
WAITED_FOR_S = 15.0
"""A worker that is silent may be busy with what it last spoke of; one that is silent for longer is taken for gone."""


class Drained:
    """Watches snapshots for draining instances that have become idle."""

    def idle_after(self, snapshot: Snapshot) -> list[str]:
        """Return the draining instances at which, after this snapshot, no worker has a request.

        A worker counts as soon as it knows that the instance drains: one that still runs an older configuration may be
        sending requests there at this moment. While other web processes are not heard, nobody knows what their workers
        have in flight.
        """
        if not sharing().whole:
            return []
        draining = {s.id for s in snapshot.instances if s.state is InstanceState.DRAINING and not s.own_requests}
        return sorted(draining - self._busy()) if draining else []

    def mark(self, instance_id: str) -> None:
        """Make an idle instance *drained*."""
        if mark_idle(instance_id=instance_id):
            logger.info("instance %s is drained", instance_id)

    def _busy(self) -> set[str]:
        return {
            sample.id
            for snapshot in hub().snapshots_within(WAITED_FOR_S)
            for sample in snapshot.instances
            if sample.own_requests or sample.state is not InstanceState.DRAINING
        }
