"""What happened that may explain a change in the curves: policies published, instances taken out, alerts raised."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from django.urls import reverse

from controlplane.accounts.models import AuditEntry
from controlplane.accounts.selectors import audit_entries
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.models import Alert
from controlplane.alerts.selectors import alerts

MOST_EVENTS = 40
TOGETHER_S = 5.0


class EventKind(StrEnum):
    """What sort of thing happened; the page has a mark for each."""

    POLICY = "policy"
    ROTATION = "rotation"
    """An instance came or went."""
    RESTART = "restart"
    ALERT = "alert"


class PastEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; ``href`` is its page."""

    at_s: float
    kind: EventKind
    text: str
    href: str


_ACTIONS = {
    "policy.publish": (EventKind.POLICY, "policy {} published"),
    "policy.rollback": (EventKind.POLICY, "policy {} rolled back"),
    "workload.change": (EventKind.POLICY, "workload {} changed"),
    "instance.register": (EventKind.ROTATION, "{} registered"),
    "instance.drain": (EventKind.ROTATION, "{} draining"),
    "instance.idle": (EventKind.ROTATION, "{} drained"),
    "instance.undrain": (EventKind.ROTATION, "{} back from draining"),
    "instance.maintain": (EventKind.ROTATION, "{} in maintenance"),
    "instance.down": (EventKind.ROTATION, "{} unreachable"),
    "instance.lease_expired": (EventKind.ROTATION, "lease of {} expired"),
    "instance.up": (EventKind.ROTATION, "{} in rotation"),
    "instance.returned": (EventKind.ROTATION, "{} reachable again"),
    "instance.remove": (EventKind.ROTATION, "{} removed"),
    "instance.restarted": (EventKind.RESTART, "engine of {} restarted"),
}
_PAGES = {
    "policy": ("dashboards:policy", "dashboards:policies"),
    "instance": ("dashboards:instance", "dashboards:instances"),
    "workload": (None, "dashboards:workloads"),
}


def events_since(unix_s: float, until_s: float | None = None) -> Sequence[PastEvent]:
    """Return the newest events since a moment, and until another where one is given; oldest first."""
    since = datetime.fromtimestamp(unix_s, UTC)
    changes = audit_entries().filter(at__gte=since, action__in=_ACTIONS)
    raised = alerts().filter(started_at__gte=since)
    if until_s is not None:
        until = datetime.fromtimestamp(until_s, UTC)
        changes, raised = changes.filter(at__lte=until), raised.filter(started_at__lte=until)
    found = [*map(_of_changes, _together(changes[:MOST_EVENTS])), *map(_of_alert, raised[:MOST_EVENTS])]
    return sorted(found, key=lambda event: event.at_s)[-MOST_EVENTS:]


def _together(changes: Iterable[AuditEntry]) -> Iterable[Sequence[AuditEntry]]:
    """Put the same change of many things at about the same time together: a fleet that starts is one event."""
    groups: list[list[AuditEntry]] = []
    for entry in sorted(changes, key=lambda entry: (entry.action, entry.at)):
        last = groups[-1][-1] if groups else None
        if last is not None and last.action == entry.action and (entry.at - last.at).total_seconds() < TOGETHER_S:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def _of_changes(entries: Sequence[AuditEntry]) -> PastEvent:
    first = entries[0]
    kind, text = _ACTIONS[first.action]
    place = first.action.partition(".")[0]
    names = sorted({entry.object_name for entry in entries})
    one, many = _PAGES[place]
    return PastEvent(
        at_s=first.at.timestamp(),
        kind=kind,
        text=text.format(names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"),
        href=reverse(one, args=[names[0]]) if one and len(names) == 1 else reverse(many),
    )


def _of_alert(alert: Alert) -> PastEvent:
    title = KINDS[alert.kind].title if alert.kind in KINDS else alert.kind
    about = ", ".join(alert.labels.values())
    text = f"alert: {title}" + (f" ({about})" if about else "")
    href = reverse("dashboards:alert", args=[alert.pk])
    return PastEvent(at_s=alert.started_at.timestamp(), kind=EventKind.ALERT, text=text, href=href)
