"""What people do with alerts: acknowledge, resolve, assign, comment, one at a time or many."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.models import User
from controlplane.accounts.services.audit import record
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.lifecycle import AlertEvent
from controlplane.alerts.models import Alert, Suspicion
from controlplane.alerts.services.announcing import announce_acknowledgement, announce_end
from controlplane.alerts.services.timeline import What, move, note
from controlplane.errors import ControlPlaneError, Invalid, NotFound

MAX_BULK = 500
MAX_COMMENT = 5_000


@transaction.atomic
def acknowledge(*, actor: Actor, alert_id: UUID | str, until: datetime | None = None, comment: str = "") -> Alert:
    """Promise to look after an alert, perhaps only until a time at which it fires again.

    :raises Invalid: for an end that has passed, or a comment that is too long.
    :raises IllegalTransition: when it is resolved.
    """
    now = timezone.now()
    if until is not None and until <= now:
        raise Invalid({"until": ["It has already passed."]})
    _check_comment(comment)
    alert = locked(alert_id)
    before = describe(alert)
    move(alert, AlertEvent.ACKNOWLEDGE, now)
    alert.acknowledged_by, alert.acknowledged_until = actor.label, until
    if describe(alert) == before and not comment:
        return alert
    alert.save()
    end = "" if until is None else f"until {until:%Y-%m-%d %H:%M} UTC"
    note(alert, What.ACKNOWLEDGED, actor, now, ": ".join(part for part in (end, comment) if part))
    _audit(actor, "alert.acknowledge", alert, before, comment)
    announce_acknowledgement(alert)
    alerts_changed()
    return alert


@transaction.atomic
def resolve(*, actor: Actor, alert_id: UUID | str, comment: str = "") -> Alert:
    """Say that it is over; evidence that goes on brings the same alert back. Resolving twice changes nothing."""
    now = timezone.now()
    _check_comment(comment)
    alert = locked(alert_id)
    before = describe(alert)
    if not move(alert, AlertEvent.RESOLVE, now):
        return alert
    alert.resolved_by = actor.label
    alert.save()
    Suspicion.objects.filter(pk=alert.fingerprint).delete()
    note(alert, What.RESOLVED, actor, now, comment)
    _audit(actor, "alert.resolve", alert, before, comment)
    announce_end(alert)
    alerts_changed()
    return alert


@transaction.atomic
def assign(*, actor: Actor, alert_id: UUID | str, username: str | None) -> Alert:
    """Give an alert to somebody, or to nobody.

    :raises Invalid: when there is no such person.
    """
    person = None
    if username:
        person = User.objects.filter(username=username, is_active=True).first()
        if person is None:
            raise Invalid({"assignee": [f"There is nobody named {username}."]})
    alert = locked(alert_id)
    before = describe(alert)
    if alert.assignee_id == (None if person is None else person.pk):
        return alert
    alert.assignee = person
    alert.save(update_fields=["assignee"])
    note(alert, What.ASSIGNED, actor, timezone.now(), "nobody" if person is None else person.username)
    _audit(actor, "alert.assign", alert, before, "")
    alerts_changed()
    return alert


@transaction.atomic
def comment(*, actor: Actor, alert_id: UUID | str, text: str) -> Alert:
    """Say something about an alert.

    :raises Invalid: when it is blank or too long.
    """
    if not text.strip():
        raise Invalid({"text": ["It must not be blank."]})
    _check_comment(text, "text")
    alert = locked(alert_id)
    note(alert, What.COMMENTED, actor, timezone.now(), text.strip())
    _audit(actor, "alert.comment", alert, describe(alert), text.strip())
    alerts_changed()
    return alert


def each(service: Callable[..., Alert], alert_ids: Sequence[UUID | str], **arguments: Any) -> dict[str, str]:
    """Do one thing to many alerts, each in a transaction of its own; return why it was refused, by id.

    :raises Invalid: for none, or too many.
    """
    if not 1 <= len(alert_ids) <= MAX_BULK:
        raise Invalid({"alerts": [f"There must be 1 to {MAX_BULK}."]})
    refused: dict[str, str] = {}
    for alert_id in dict.fromkeys(str(identity) for identity in alert_ids):
        try:
            service(alert_id=alert_id, **arguments)
        except Invalid:
            raise  # the same for all of them
        except ControlPlaneError as error:
            refused[alert_id] = str(error)
    return refused


def locked(alert_id: UUID | str) -> Alert:
    """Return an alert, locked until the end of the transaction.

    :raises NotFound: when there is none.
    """
    found = Alert.objects.select_for_update().filter(pk=alert_id).first()
    if found is None:
        raise NotFound("There is no such alert.")
    return found


def describe(alert: Alert) -> dict[str, Any]:
    """Return what the audit log keeps of an alert."""
    until = alert.acknowledged_until
    return {
        "state": str(alert.state),
        "acknowledged_by": alert.acknowledged_by,
        "acknowledged_until": None if until is None else until.isoformat(),
        "assignee": None if alert.assignee is None else alert.assignee.username,
    }


def _audit(actor: Actor, action: str, alert: Alert, before: dict[str, Any], message: str) -> None:
    target = ("alert", alert.pk, alert.summary[:200])
    record(actor=actor, action=action, target=target, before=before, after=describe(alert), message=message)


def _check_comment(text: str, field: str = "comment") -> None:
    if len(text) > MAX_COMMENT:
        raise Invalid({field: [f"It has {len(text)} characters, but may have {MAX_COMMENT}."]})
