"""Deleting rows whose time is over."""

from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from controlplane.accounts.models import AuditEntry, LoginLink
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Delivery, DeliveryState, Silence
from controlplane.decisions.models import KeptDecision
from controlplane.fleet.models import Instance
from controlplane.policies.models import ShadowHour, ShadowMoveHour
from router.core.instance import InstanceState

_REMOVED_FOR = timedelta(days=30)
_LINK_FOR = timedelta(days=7)
_ALERT_FOR = timedelta(days=90)
_SHADOW_FOR = timedelta(days=90)
_DELIVERY_FOR = timedelta(days=30)


def prune() -> Mapping[str, int]:
    """Delete what is over, and return how many rows of each kind went."""
    now = timezone.now()
    decisions_since = now - timedelta(days=settings.DECISION_RETENTION_DAYS)
    audit_since = now - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    doomed = {
        "removed instances": Instance.objects.filter(state=InstanceState.REMOVED, state_since__lt=now - _REMOVED_FOR),
        "sign-in links": LoginLink.objects.filter(expires_at__lt=now - _LINK_FOR),
        "sessions": Session.objects.filter(expire_date__lt=now),
        "resolved alerts": Alert.objects.filter(state=AlertState.RESOLVED, resolved_at__lt=now - _ALERT_FOR),
        "notifications": Delivery.objects.filter(settled_at__lt=now - _DELIVERY_FOR).exclude(
            state=DeliveryState.PENDING
        ),
        "silences": Silence.objects.filter(ends_at__lt=now - _ALERT_FOR),
        "shadow hours": ShadowHour.objects.filter(hour__lt=now - _SHADOW_FOR),
        "shadow moves": ShadowMoveHour.objects.filter(hour__lt=now - _SHADOW_FOR),
        "kept decisions": KeptDecision.objects.filter(kept_at__lt=decisions_since),
        "audit entries": AuditEntry.objects.filter(at__lt=audit_since),
    }
    return {what: rows.delete()[0] for what, rows in doomed.items()}
