"""Hotspots are looked for before a bucket of telemetry is whole: seconds count, and the rule is the same.

A web process that sees a hot class in the snapshots of its workers (:func:`looks_hot`) writes what it has and rings;
the look at the rows (:func:`look_early`) covers all workers. An early look only ever raises and watches. That a
condition is over is for the evaluations of whole buckets to say, which count how often it was not found.
"""

import time
from collections.abc import Sequence

from controlplane.alerts.evaluating import findings, limits_in_force, read_present
from controlplane.alerts.evaluators import hotspot_class
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.raising import raise_alert
from controlplane.alerts.services.watching import watch_hotspots
from controlplane.alerts.window import Window
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup

_DEFAULT_LIMITS = hotspot_class.HotspotClassLimits()


def looks_hot(filling: Sequence[WorkerRollup]) -> bool:
    """Say whether some class is hot in what these workers last reported, by the default limits of the kind."""
    end = max((row.bucket for row in filling), default=0) + BUCKET_S
    window = Window(end=end, rollups=filling)
    return any(True for _ in hotspot_class.hotspot_class(window, _DEFAULT_LIMITS))


def look_early() -> None:
    """Raise alerts for the classes that are hot at this moment, and put them on watch."""
    limits = {name: limits for name, limits in limits_in_force().items() if name == hotspot_class.KIND}
    now_s = time.time()
    found = list(findings(read_present(now_s), limits))
    if not found or KINDS[hotspot_class.KIND].patience.raise_after > 1:
        return
    for finding in found:
        raise_alert(finding=finding)
    watch_hotspots(end=int(now_s), findings=found)
    announce_due()
