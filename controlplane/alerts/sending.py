"""Sending what was claimed: many at once, each within its limit, each outcome noted as soon as it is known."""

import asyncio
import logging
import time
from collections.abc import Sequence

import msgspec
from asgiref.sync import sync_to_async
from django.utils import timezone

from controlplane.alerts.models import Channel, ChannelThread, Delivery, Occasion
from controlplane.alerts.notifiers import NOTIFIERS
from controlplane.alerts.notifiers.base import ChannelSettings, DeliveryFailed, MessageRejected, Outgoing, Receipt
from controlplane.alerts.services import outbox
from controlplane.errors import Invalid
from controlplane.sealing import CannotOpen, unseal

logger = logging.getLogger(__name__)
AT_ONCE = 16


def send_due() -> int:
    """Send what is due, one round of at most ``AT_ONCE``; return how many were tried."""
    claimed = outbox.claim(AT_ONCE)
    if claimed:
        asyncio.run(_send_all(claimed))
    return len(claimed)


def settings_of(channel: Channel) -> ChannelSettings:
    """Return the settings of a channel.

    :raises DeliveryFailed: for good, when they cannot be read or no longer be.
    """
    try:
        return NOTIFIERS[channel.kind].parse(msgspec.json.decode(unseal(bytes(channel.sealed_settings))))
    except (CannotOpen, Invalid) as error:
        raise DeliveryFailed(f"The settings cannot be used: {error}", permanent=True) from error


async def _send_all(claimed: Sequence[Delivery]) -> None:
    await asyncio.gather(*(_send(row) for row in claimed))


async def _send(row: Delivery) -> None:
    started_s = time.monotonic()
    try:
        receipt = await _attempt(row)
    except DeliveryFailed as failure:
        took_s = time.monotonic() - started_s
        await sync_to_async(_note_failure)(row, failure, took_s)
    except Exception as error:  # a fault of ours must not stop the others, nor lose the row
        logger.exception("could not send notification %s", row.pk)
        fault = DeliveryFailed(f"{type(error).__name__} while sending; see the log.")
        await sync_to_async(_note_failure)(row, fault, time.monotonic() - started_s)
    else:
        await sync_to_async(_note_success)(row, receipt, time.monotonic() - started_s)


async def _attempt(row: Delivery) -> Receipt:
    settings = settings_of(row.channel)
    reference = await sync_to_async(_reference)(row)
    if row.claimed_until is None or timezone.now() >= row.claimed_until:
        raise DeliveryFailed("The claim ran out before it was sent.")
    message = Outgoing(
        delivery_id=row.pk,
        occasion=Occasion(row.occasion),
        alert_id=row.alert_id,
        body=row.body,
        reference=reference,
        tried_since=row.created_at if row.attempts > 1 else None,
    )
    return await NOTIFIERS[row.channel.kind].send(message, settings)


def _reference(row: Delivery) -> str | None:
    if row.alert_id is None:
        return None
    threads = ChannelThread.objects.filter(channel=row.channel_id, alert=row.alert_id)
    return threads.values_list("reference", flat=True).first()


def _note_success(row: Delivery, receipt: Receipt, took_s: float) -> None:
    if receipt.reference and row.alert_id is not None:
        ChannelThread.objects.update_or_create(
            channel_id=row.channel_id, alert_id=row.alert_id, defaults={"reference": receipt.reference}
        )
    outbox.delivered(row, outbox.Attempt(took_s, receipt.status, receipt.detail))


def _note_failure(row: Delivery, failure: DeliveryFailed, took_s: float) -> None:
    attempt = outbox.Attempt(took_s, failure.status, str(failure))
    if isinstance(failure, MessageRejected):
        outbox.failed_message(row, attempt)
    elif failure.permanent:
        outbox.failed_for_good(row, attempt)
    else:
        outbox.failed(row, attempt, refused=failure.refused, retry_after_s=failure.retry_after_s)
