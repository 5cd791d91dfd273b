"""Deleting rows whose time is over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.accounts.models import AuditEntry, LoginLink
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Delivery, DeliveryState, Silence
from controlplane.decisions.models import KeptDecision
from controlplane.fleet.models import Instance
from controlplane.policies.models import ShadowHour, ShadowMoveHour
from router.core.instance import InstanceState

Doomed = Callable[[datetime], QuerySet[Any]]
"""Given the moment before which rows are over, returns those."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How long rows of a kind are kept; ``setting`` is the variable of the environment that says so, if one does."""

    what: str
    kept_days: int
    doomed: Doomed
    setting: str = ""


def rules() -> tuple[Rule, ...]:
    """Return every rule in force."""
    return (
        Rule(
            "removed instances",
            30,
            lambda before: Instance.objects.filter(state=InstanceState.REMOVED, state_since__lt=before),
        ),
        Rule("sign-in links", 7, lambda before: LoginLink.objects.filter(expires_at__lt=before)),
        Rule("sessions", 0, lambda before: Session.objects.filter(expire_date__lt=before)),
        Rule(
            "resolved alerts",
            90,
            lambda before: Alert.objects.filter(state=AlertState.RESOLVED, resolved_at__lt=before),
        ),
        Rule(
            "notifications",
            30,
            lambda before: Delivery.objects.filter(settled_at__lt=before).exclude(state=DeliveryState.PENDING),
        ),
        Rule("silences", 90, lambda before: Silence.objects.filter(ends_at__lt=before)),
        Rule("shadow hours", 90, lambda before: ShadowHour.objects.filter(hour__lt=before)),
        Rule("shadow moves", 90, lambda before: ShadowMoveHour.objects.filter(hour__lt=before)),
        Rule(
            "kept decisions",
            settings.DECISION_RETENTION_DAYS,
            lambda before: KeptDecision.objects.filter(kept_at__lt=before),
            "POINTSMAN_DECISION_RETENTION_DAYS",
        ),
        Rule(
            "audit entries",
            settings.AUDIT_RETENTION_DAYS,
            lambda before: AuditEntry.objects.filter(at__lt=before),
            "POINTSMAN_AUDIT_RETENTION_DAYS",
        ),
    )


def prune() -> Mapping[str, int]:
    """Delete what is over, and return how many rows of each kind went."""
    now = timezone.now()
    return {rule.what: rule.doomed(now - timedelta(days=rule.kept_days)).delete()[0] for rule in rules()}
