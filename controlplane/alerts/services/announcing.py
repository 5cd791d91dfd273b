"""Deciding who is told of what: from alerts to rows of the outbox."""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.matchers import all_hold
from controlplane.alerts.models import Alert, Channel, Delivery, DeliveryState, Occasion, Silence, TimelineEntry
from controlplane.alerts.notice import notice_of
from controlplane.alerts.notifiers import NOTIFIERS
from controlplane.alerts.services.outbox import enqueue
from controlplane.alerts.services.timeline import What, note


@transaction.atomic
def announce_due() -> int:
    """Tell channels of firing alerts that they have not been told of and that nobody silenced; return how many."""
    now = timezone.now()
    silences = [silence for silence in Silence.objects.filter(ends_at__gt=now) if silence.is_active(now)]
    due = list(Alert.objects.select_for_update().filter(state=AlertState.FIRING, announced=False))
    channels = list(Channel.objects.filter(enabled=True)) if due else []
    announced = 0
    for alert in due:
        silence = next((s for s in silences if all_hold(s.conditions, alert.all_labels)), None)
        if silence is not None:
            _note_silenced(alert, silence)
            continue
        told = _tell(alert, Occasion.FIRING, channels)
        alert.announced = True
        alert.save(update_fields=["announced"])
        note(alert, What.NOTIFIED, SYSTEM, now, ", ".join(told) or "no channel")
        announced += 1
    if announced:
        alerts_changed()
    return announced


def announce_acknowledgement(alert: Alert) -> None:
    """Tell the channels that were told of an alert that somebody looks after it, where they want to know."""
    _tell(alert, Occasion.ACKNOWLEDGED, _told_before(alert))


def announce_end(alert: Alert) -> None:
    """Tell the channels that were told of an alert that it is over."""
    _tell(alert, Occasion.RESOLVED, _told_before(alert))


@transaction.atomic
def catch_up(channel: Channel) -> None:
    """Tell a channel, new or enabled again, of the alerts that fire now."""
    for alert in Alert.objects.filter(state=AlertState.FIRING, announced=True):
        _tell(alert, Occasion.FIRING, [channel])


def _tell(alert: Alert, occasion: Occasion, channels: Iterable[Channel]) -> list[str]:
    told = []
    for channel in channels:
        wanted = NOTIFIERS[channel.kind].occasions
        if occasion in wanted and channel.enabled and all_hold(channel.conditions, alert.all_labels):
            enqueue(channel=channel, alert=alert, notice=notice_of(alert, occasion))
            told.append(channel.name)
    return told


def _told_before(alert: Alert) -> list[Channel]:
    told = Delivery.objects.filter(alert=alert, occasion=Occasion.FIRING).exclude(state=DeliveryState.DROPPED)
    return list(Channel.objects.filter(pk__in=told.values("channel")).order_by("name"))


def _note_silenced(alert: Alert, silence: Silence) -> None:
    """Note once for each time an alert fires that nobody was told."""
    noted = TimelineEntry.objects.filter(alert=alert, what=What.NOT_NOTIFIED, at__gte=alert.state_since)
    if not noted.exists():
        until = f"silenced until {silence.ends_at:%Y-%m-%d %H:%M} UTC by {silence.created_by}: {silence.comment}"
        note(alert, What.NOT_NOTIFIED, SYSTEM, timezone.now(), until)
        alerts_changed()
