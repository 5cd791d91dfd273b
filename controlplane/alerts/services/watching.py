"""Putting prefix classes on watch, and releasing them: what stage 2 of hotspot mitigation in the routers goes by.

A class is put on watch as soon as it is a hotspot, and released when it has been none for a whole window, or after a
longest time; then the next finding puts it on watch again.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.alerts.evaluators.hotspot_class import CLASS_LABEL, KIND
from controlplane.alerts.finding import Finding
from controlplane.alerts.models import WatchedClass
from controlplane.alerts.window import WINDOW_S
from controlplane.publication import configuration_changed
from controlplane.telemetry.rollup import BUCKET_S

RELEASE_AFTER = WINDOW_S // BUCKET_S
"""Evaluations in a row without the finding."""
LONGEST = timedelta(minutes=30)


@transaction.atomic
def watch_hotspots(*, findings: Iterable[Finding]) -> bool:
    """Make the watched classes follow an evaluation's findings; return whether the set changed."""
    now = timezone.now()
    hot = {finding.labels[CLASS_LABEL] for finding in findings if finding.kind == KIND}
    rows = {row.key: row for row in WatchedClass.objects.select_for_update()}
    released = []
    for key, row in rows.items():
        quiet = 0 if key in hot else row.quiet + 1
        if quiet >= RELEASE_AFTER or now - row.since >= LONGEST:
            released.append(key)
        elif quiet != row.quiet:
            WatchedClass.objects.filter(pk=key).update(quiet=quiet)
    added = [WatchedClass(key=key, since=now) for key in sorted(hot - rows.keys())]
    WatchedClass.objects.bulk_create(added, ignore_conflicts=True)
    WatchedClass.objects.filter(pk__in=released).delete()
    changed = bool(added or released)
    if changed:
        configuration_changed()
    return changed
