"""Writing timelines, and moving alerts through their life-cycle: the only place that writes a state."""

from datetime import datetime

from controlplane.accounts.actor import Actor
from controlplane.alerts.lifecycle import AlertEvent, AlertState, next_state
from controlplane.alerts.models import Alert, TimelineEntry

What = TimelineEntry.What


def note(alert: Alert, what: TimelineEntry.What, actor: Actor, at: datetime, text: str = "") -> None:
    """Add an entry to the timeline of an alert."""
    TimelineEntry.objects.create(alert=alert, at=at, what=what, actor=actor.label, text=text)


def move(alert: Alert, event: AlertEvent, at: datetime) -> bool:
    """Let an event happen to an alert, in memory; return whether its state changed.

    :raises IllegalTransition: when the life-cycle has no such move.
    """
    before = alert.life
    after = next_state(before, event)
    if after is before:
        return False
    alert.state = after
    alert.state_since = at
    if after is not AlertState.ACKNOWLEDGED:
        alert.acknowledged_by, alert.acknowledged_until = "", None
    if after is AlertState.RESOLVED:
        alert.resolved_at = at
    else:
        alert.resolved_at, alert.resolved_by = None, ""
    return True
