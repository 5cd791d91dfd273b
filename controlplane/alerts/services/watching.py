"""Putting prefix classes on watch, and releasing them: what stage 2 of hotspot mitigation in the routers goes by.

The rule is the routers' own (:mod:`router.core.hotspot.stage_one`); time is that of the windows' ends.
"""

from collections.abc import Iterable

from django.db import transaction

from controlplane.alerts.evaluators.hotspot_class import CLASS_LABEL, KIND
from controlplane.alerts.finding import Finding
from controlplane.alerts.models import WatchedClass
from controlplane.alerts.window import WINDOW_S
from controlplane.publication import configuration_changed
from router.core.hotspot.stage_one import Watch, next_watch


@transaction.atomic
def watch_hotspots(*, end: int, findings: Iterable[Finding]) -> bool:
    """Make the watched classes follow the findings of the window that ends at ``end``; say whether the set changed."""
    hot = {finding.labels[CLASS_LABEL] for finding in findings if finding.kind == KIND}
    rows = {row.key: row for row in WatchedClass.objects.select_for_update()}
    changed = False
    for key in sorted(hot | rows.keys()):
        row = rows.get(key)
        before = None if row is None else Watch(row.since_s, row.calm_since_s)
        after = next_watch(before, key in hot, float(end), float(WINDOW_S))
        changed = changed or (before is None) is not (after is None)
        if after is None:
            WatchedClass.objects.filter(pk=key).delete()
        elif after != before:
            values = {"since_s": after.since_s, "calm_since_s": after.calm_since_s}
            WatchedClass.objects.update_or_create(pk=key, defaults=values)
    if changed:
        configuration_changed()
    return changed
