"""Channels: made, changed, tested, enabled, removed. Secrets go in, and never come out again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.matchers import Matcher, dump_matchers
from controlplane.alerts.models import Channel, ChannelKind, Delivery
from controlplane.alerts.notice import trial_notice
from controlplane.alerts.notifiers import NOTIFIERS
from controlplane.alerts.services.announcing import catch_up
from controlplane.alerts.services.outbox import drop_waiting, enqueue
from controlplane.errors import Conflict, Invalid, NameTaken, NotFound
from controlplane.sealing import CannotOpen, seal, unseal


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """What somebody wants a channel to be. Secret settings that are left out stay as they are."""

    name: str
    kind: ChannelKind
    settings: Mapping[str, Any]
    matchers: tuple[Matcher, ...] = ()


@transaction.atomic
def create_channel(*, actor: Actor, spec: ChannelSpec) -> Channel:
    """Make a channel, and tell it of what fires now.

    :raises Invalid: for settings that cannot be.
    :raises NameTaken: when a channel has the name.
    """
    channel = Channel(name=_name(spec), kind=spec.kind)
    _take_over(channel, spec, {})
    _save(channel)
    record(actor=actor, action="channel.create", target=_target(channel), after=describe(channel))
    catch_up(channel)
    alerts_changed()
    return channel


@transaction.atomic
def change_channel(*, actor: Actor, channel_id: UUID | str, spec: ChannelSpec) -> Channel:
    """Give a channel other settings.

    :raises Invalid: for settings that cannot be, or another kind.
    """
    channel = locked(channel_id)
    if spec.kind != channel.kind:
        raise Invalid({"kind": ["It cannot be changed; make another channel."]})
    before = describe(channel)
    channel.name = _name(spec)
    _take_over(channel, spec, kept_settings(channel))
    _save(channel)
    record(actor=actor, action="channel.change", target=_target(channel), before=before, after=describe(channel))
    alerts_changed()
    return channel


@transaction.atomic
def enable_channel(*, actor: Actor, channel_id: UUID | str) -> Channel:
    """Enable a channel again, and tell it of what fires now; enabling twice changes nothing."""
    channel = locked(channel_id)
    if channel.enabled:
        return channel
    channel.enabled, channel.disabled_reason, channel.disabled_at, channel.refusals = True, "", None, 0
    channel.save()
    record(actor=actor, action="channel.enable", target=_target(channel), after=describe(channel))
    catch_up(channel)
    alerts_changed()
    return channel


@transaction.atomic
def disable_channel(*, actor: Actor, channel_id: UUID | str, reason: str) -> Channel:
    """Disable a channel; what still waits for it is dropped."""
    channel = locked(channel_id)
    if not channel.enabled:
        return channel
    channel.enabled, channel.disabled_at = False, timezone.now()
    channel.disabled_reason = (reason.strip() or f"disabled by {actor.label}")[:500]
    channel.save()
    drop_waiting(channel.pk, f"the channel was disabled: {channel.disabled_reason}")
    record(actor=actor, action="channel.disable", target=_target(channel), message=channel.disabled_reason)
    alerts_changed()
    return channel


@transaction.atomic
def remove_channel(*, actor: Actor, channel_id: UUID | str) -> None:
    """Remove a channel with its deliveries."""
    channel = locked(channel_id)
    record(actor=actor, action="channel.remove", target=_target(channel), before=describe(channel))
    channel.delete()
    alerts_changed()


@transaction.atomic
def try_channel(*, actor: Actor, channel_id: UUID | str) -> Delivery:
    """Send a test; the delivery log says how it went.

    :raises Conflict: when the channel is disabled.
    """
    channel = locked(channel_id)
    if not channel.enabled:
        raise Conflict(f"The channel is disabled: {channel.disabled_reason}")
    record(actor=actor, action="channel.test", target=_target(channel))
    return enqueue(channel=channel, alert=None, notice=trial_notice(channel.name, timezone.now()))


def locked(channel_id: UUID | str) -> Channel:
    """Return a channel, locked until the end of the transaction.

    :raises NotFound: when there is none.
    """
    found = Channel.objects.select_for_update().filter(pk=channel_id).first()
    if found is None:
        raise NotFound("There is no such channel.")
    return found


def kept_settings(channel: Channel) -> dict[str, Any]:
    """Return the settings of a channel as they were given; nothing when they cannot be read any more."""
    try:
        kept: dict[str, Any] = msgspec.json.decode(unseal(bytes(channel.sealed_settings)))
    except CannotOpen:
        return {}
    return kept


def shown_settings(channel: Channel) -> dict[str, Any]:
    """Return the settings that are no secret."""
    secret = NOTIFIERS[channel.kind].secret_fields
    return {name: value for name, value in kept_settings(channel).items() if name not in secret}


def describe(channel: Channel) -> dict[str, Any]:
    """Return what the audit log may know of a channel."""
    return {
        "name": channel.name,
        "kind": str(channel.kind),
        "target": channel.target,
        "settings": shown_settings(channel),
        "matchers": [str(matcher) for matcher in channel.conditions],
        "enabled": channel.enabled,
    }


def _name(spec: ChannelSpec) -> str:
    name = spec.name.strip()
    if not 1 <= len(name) <= 100:
        raise Invalid({"name": ["It must have 1 to 100 characters."]})
    return name


def _take_over(channel: Channel, spec: ChannelSpec, kept: Mapping[str, Any]) -> None:
    notifier = NOTIFIERS[spec.kind]
    secrets = {name: kept[name] for name in notifier.secret_fields if name in kept}
    parsed = notifier.parse({**secrets, **spec.settings})
    channel.sealed_settings = seal(msgspec.json.encode(parsed))
    channel.target = parsed.target()
    channel.matchers = dump_matchers(spec.matchers)


def _save(channel: Channel) -> None:
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError as error:
        raise NameTaken(f"There is already a channel named {channel.name}.") from error


def _target(channel: Channel) -> tuple[str, object, str]:
    return ("channel", channel.pk, channel.name)
