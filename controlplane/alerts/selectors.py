"""What reads rows of the alerts app."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet
from django.utils import timezone

from controlplane.alerts.lifecycle import OPEN, AlertState
from controlplane.alerts.matchers import Matcher, all_hold
from controlplane.alerts.models import Alert, Channel, Delivery, DeliveryState, Evaluation, Silence, WatchedClass
from controlplane.errors import NotFound


def alerts() -> QuerySet[Alert]:
    """Return all alerts with their assignees, newest first."""
    return Alert.objects.select_related("assignee")


def open_alerts() -> QuerySet[Alert]:
    """Return the alerts that are not resolved, newest first."""
    return alerts().filter(state__in=OPEN)


def alert(alert_id: UUID | str) -> Alert:
    """Return one alert.

    :raises NotFound: when there is none.
    """
    found = alerts().filter(pk=alert_id).first()
    if found is None:
        raise NotFound("There is no such alert.")
    return found


def count_by_state() -> Mapping[AlertState, int]:
    """Return how many alerts are in each state, those with none included."""
    counts = dict(Alert.objects.order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in AlertState}


def silences() -> QuerySet[Silence]:
    """Return all silences, those that end last first."""
    return Silence.objects.all()


def active_silences() -> list[Silence]:
    """Return the silences that hold now."""
    now = timezone.now()
    return [silence for silence in Silence.objects.filter(ends_at__gt=now) if silence.is_active(now)]


def silenced_by(alert: Alert, silences: Iterable[Silence]) -> Silence | None:
    """Return the first of some silences that matches an alert."""
    return next((silence for silence in silences if all_hold(silence.conditions, alert.all_labels)), None)


def matched(matchers: Sequence[Matcher]) -> list[Alert]:
    """Return the open alerts that some matchers match."""
    return [alert for alert in open_alerts() if all_hold(matchers, alert.all_labels)]


def open_label_values() -> dict[str, list[str]]:
    """Return the names of the labels that open alerts have, in order, each with the values that it has there."""
    found: dict[str, set[str]] = defaultdict(set)
    for alert in open_alerts():
        for name, value in alert.all_labels.items():
            found[name].add(value)
    return {name: sorted(found[name]) for name in sorted(found)}


def channels() -> QuerySet[Channel]:
    """Return all channels, by name."""
    return Channel.objects.all()


def channel(channel_id: UUID | str) -> Channel:
    """Return one channel.

    :raises NotFound: when there is none.
    """
    found = channels().filter(pk=channel_id).first()
    if found is None:
        raise NotFound("There is no such channel.")
    return found


def deliveries(channel_id: UUID | str) -> QuerySet[Delivery]:
    """Return the notifications of a channel with their attempts, newest first."""
    rows = Delivery.objects.filter(channel__pk=channel_id).select_related("alert").prefetch_related("log")
    return rows.order_by("-sequence")


def count_waiting() -> int:
    """Return how many notifications have not been delivered yet."""
    return Delivery.objects.filter(state=DeliveryState.PENDING).count()


def watched_classes() -> list[str]:
    """Return the keys of the prefix classes on watch, in order."""
    return list(WatchedClass.objects.order_by("key").values_list("key", flat=True))


def last_evaluated_at() -> datetime | None:
    """Return when the newest window was evaluated; None before the first."""
    return Evaluation.objects.values_list("at", flat=True).first()
