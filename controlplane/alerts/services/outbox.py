"""The outbox: notifications written in the transaction of what they tell of, claimed, settled.

A claim is one conditional UPDATE, so that no two processes send the same row, and it has an end, so that a process
that is killed while sending holds nothing up: the row is claimed again, with the same id and the same body. What is
known of a killed attempt is that it may have arrived; receivers tell by the idempotency key.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.audit import record
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.doorbell import ring_deliveries_on_commit
from controlplane.alerts.models import Alert, Channel, Delivery, DeliveryAttempt, DeliveryState
from controlplane.alerts.notice import Notice
from controlplane.alerts.notifiers import NOTIFIERS

LEASE = timedelta(seconds=30)
"""How long a claim lasts; longer than one attempt may take."""
MAX_ATTEMPTS = 12
"""With the back-off below: given up after about an hour."""
MAX_REFUSALS = 5
"""Answers like 404 in a row after which a channel is disabled."""
_FIRST_WAIT_S = 2.0
_LONGEST_WAIT_S = 600.0
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt went; times in seconds."""

    took_s: float
    status: int | None
    detail: str


def enqueue(*, channel: Channel, alert: Alert | None, notice: Notice) -> Delivery:
    """Put a notification into the outbox; its body is fixed from now on."""
    newest = Delivery.objects.aggregate(newest=Max("sequence"))["newest"] or 0
    made = Delivery.objects.create(
        sequence=newest + 1,
        channel=channel,
        alert=alert,
        occasion=notice.occasion,
        body=NOTIFIERS[channel.kind].compose(notice, channel.name),
        due_at=timezone.now(),
    )
    ring_deliveries_on_commit()
    return made


def claim(limit: int, now: datetime | None = None) -> list[Delivery]:
    """Return notifications that are due, each to one caller only, oldest first.

    Those of one alert to one channel are sent one after the other: a later one waits until the earlier is settled.
    """
    now = now or timezone.now()
    free = Q(claim=None) | Q(claimed_until__lte=now)
    earlier = Delivery.objects.filter(
        channel=OuterRef("channel"),
        alert=OuterRef("alert"),
        state=DeliveryState.PENDING,
        sequence__lt=OuterRef("sequence"),
    )
    due = Delivery.objects.filter(free, ~Exists(earlier), state=DeliveryState.PENDING, due_at__lte=now)
    claimed = []
    for row in due.filter(channel__enabled=True).select_related("channel").order_by("sequence")[:limit]:
        mine = uuid4()
        free_row = Delivery.objects.filter(free, pk=row.pk, state=DeliveryState.PENDING, attempts=row.attempts)
        taken = free_row.update(claim=mine, claimed_until=now + LEASE, attempts=F("attempts") + 1)
        if taken:
            _note_lost_attempt(row, now)
            row.claim, row.claimed_until, row.attempts = mine, now + LEASE, row.attempts + 1
            claimed.append(row)
    return claimed


@transaction.atomic
def delivered(row: Delivery, attempt: Attempt) -> bool:
    """Note that a claimed notification arrived; False when the claim was lost meanwhile."""
    if not _settle(row, DeliveryState.DELIVERED, ""):
        return False
    _log(row, attempt, ok=True)
    Channel.objects.filter(pk=row.channel_id).exclude(refusals=0).update(refusals=0)
    return True


@transaction.atomic
def failed(row: Delivery, attempt: Attempt, *, refused: bool = False, retry_after_s: float | None = None) -> None:
    """Note that an attempt failed and may succeed later; the last attempt gives up.

    :param refused: the receiver says that nothing is there; several of these in a row disable the channel.
    """
    _log(row, attempt, ok=False)
    if refused:
        Channel.objects.filter(pk=row.channel_id).update(refusals=F("refusals") + 1)
        if Channel.objects.filter(pk=row.channel_id, refusals__gte=MAX_REFUSALS).exists():
            _settle(row, DeliveryState.FAILED, attempt.detail)
            disable(row.channel_id, f"{MAX_REFUSALS} answers in a row: {attempt.detail}")
            return
    if row.attempts >= MAX_ATTEMPTS:
        _settle(row, DeliveryState.FAILED, f"given up after {row.attempts} attempts: {attempt.detail}")
        return
    wait_s = max(wait_before_s(row.attempts, random.random()), min(retry_after_s or 0.0, _LONGEST_WAIT_S))
    Delivery.objects.filter(pk=row.pk, claim=row.claim).update(
        claim=None,
        claimed_until=None,
        due_at=timezone.now() + timedelta(seconds=wait_s),
        last_error=attempt.detail[:_MAX_TEXT],
    )


@transaction.atomic
def failed_for_good(row: Delivery, attempt: Attempt) -> None:
    """Note that a channel can never deliver as it is set up, and disable it with the reason."""
    _log(row, attempt, ok=False)
    _settle(row, DeliveryState.FAILED, attempt.detail)
    disable(row.channel_id, attempt.detail)


@transaction.atomic
def failed_message(row: Delivery, attempt: Attempt) -> None:
    """Note that the receiver will never take this one message; the channel goes on."""
    _log(row, attempt, ok=False)
    _settle(row, DeliveryState.FAILED, attempt.detail)


def disable(channel_id: UUID, reason: str) -> None:
    """Disable a channel, and drop what still waits for it."""
    now = timezone.now()
    disabled = Channel.objects.filter(pk=channel_id, enabled=True).update(
        enabled=False, disabled_reason=reason[:_MAX_TEXT], disabled_at=now
    )
    if not disabled:
        return
    drop_waiting(channel_id, f"the channel was disabled: {reason}")
    channel = Channel.objects.get(pk=channel_id)
    record(actor=SYSTEM, action="channel.disable", target=("channel", channel.pk, channel.name), message=reason)
    alerts_changed()


def drop_waiting(channel_id: UUID, reason: str) -> None:
    """Drop what waits for a channel."""
    waiting = Delivery.objects.filter(channel=channel_id, state=DeliveryState.PENDING)
    waiting.update(state=DeliveryState.DROPPED, settled_at=timezone.now(), last_error=reason[:_MAX_TEXT], claim=None)


def wait_before_s(attempts: int, chance: float) -> float:
    """Return the seconds before the next attempt: doubling with each, and spread so that receivers can recover.

    :param attempts: attempts made so far, >= 1.
    :param chance: a random number from 0 to 1.
    """
    longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** (attempts - 1))
    return longest * (0.5 + chance / 2)


def _settle(row: Delivery, state: DeliveryState, error: str) -> bool:
    mine = Delivery.objects.filter(pk=row.pk, claim=row.claim, state=DeliveryState.PENDING)
    now = timezone.now()
    return bool(mine.update(state=state, settled_at=now, last_error=error[:_MAX_TEXT], claim=None, claimed_until=None))


def _log(row: Delivery, attempt: Attempt, *, ok: bool) -> None:
    DeliveryAttempt.objects.create(
        delivery=row,
        at=timezone.now(),
        took_s=round(attempt.took_s, 3),
        ok=ok,
        status=attempt.status,
        detail=attempt.detail[:_MAX_TEXT],
    )


def _note_lost_attempt(row: Delivery, now: datetime) -> None:
    if row.claim is not None:
        lost = "The process that was sending this ended before it could say how it went; it may have arrived."
        DeliveryAttempt.objects.create(delivery=row, at=now, took_s=0.0, ok=False, detail=lost)
