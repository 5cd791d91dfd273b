"""What a notification says about an alert: a value, fixed when the notification is made."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from controlplane.alerts.kinds import KINDS
from controlplane.alerts.models import Alert, Occasion
from controlplane.public_address import public_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One alert at one moment, and what there is to say about it."""

    occasion: Occasion
    alert_id: UUID | None
    fingerprint: str
    kind: str
    title: str
    severity: str
    summary: str
    labels: dict[str, str]
    meaning: str
    what_to_do: tuple[str, ...]
    started_at: datetime
    ended_at: datetime | None = None
    by: str = ""
    """Who acknowledged or resolved it."""
    url: str = ""
    values: dict[str, object] = field(default_factory=dict)


def notice_of(alert: Alert, occasion: Occasion) -> Notice:
    """Return what there is to say about an alert now."""
    kind = KINDS.get(alert.kind)
    return Notice(
        occasion=occasion,
        alert_id=alert.pk,
        fingerprint=alert.fingerprint,
        kind=alert.kind,
        title=alert.kind if kind is None else kind.title,
        severity=alert.severity,
        summary=alert.summary,
        labels=dict(alert.labels),
        meaning="" if kind is None else kind.meaning,
        what_to_do=() if kind is None else kind.what_to_do,
        started_at=alert.started_at,
        ended_at=alert.resolved_at,
        by=alert.resolved_by if occasion == Occasion.RESOLVED else alert.acknowledged_by,
        url=f"{public_address()}/alerts/{alert.pk}/",
        values=dict(alert.values),
    )


def trial_notice(channel_name: str, now: datetime) -> Notice:
    """Return the notice that the test button sends."""
    return Notice(
        occasion=Occasion.TEST,
        alert_id=None,
        fingerprint="0" * 32,
        kind="test",
        title="Test",
        severity="info",
        summary=f"This is a test of the channel {channel_name}; nothing is wrong.",
        labels={"channel": channel_name},
        meaning="Somebody pressed the test button.",
        what_to_do=(),
        started_at=now,
        url=f"{public_address()}/alerts/channels/",
    )
