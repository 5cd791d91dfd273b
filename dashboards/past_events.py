"""What happened that may explain a change in the curves: policies published, instances taken out, alerts raised."""

from collections.abc import Sequence
from datetime import UTC, datetime

from controlplane.accounts.selectors import audit_entries
from controlplane.alerts.selectors import alerts
from dashboards.plots.score_heatmap import Event

MOST_EVENTS = 40
_ACTIONS = (
    "policy.publish",
    "policy.rollback",
    "workload.change",
    "instance.register",
    "instance.drain",
    "instance.undrain",
    "instance.maintain",
    "instance.down",
    "instance.restarted",
    "instance.remove",
)


def events_since(unix_s: float) -> Sequence[Event]:
    """Return the newest events since a moment, oldest first."""
    since = datetime.fromtimestamp(unix_s, UTC)
    changes = audit_entries().filter(at__gte=since, action__in=_ACTIONS)[:MOST_EVENTS]
    found = [Event(entry.at.timestamp(), f"{entry.action}: {entry.object_name}") for entry in changes]
    raised = alerts().filter(started_at__gte=since)[:MOST_EVENTS]
    found += [Event(alert.started_at.timestamp(), f"alert: {alert.summary}") for alert in raised]
    return sorted(found)[-MOST_EVENTS:]
