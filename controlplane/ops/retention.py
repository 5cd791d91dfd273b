"""Deleting rows whose time is over."""

from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from controlplane.accounts.models import AuditEntry, LoginLink
from controlplane.fleet.models import Instance
from router.core.instance import InstanceState

_REMOVED_FOR = timedelta(days=30)
_LINK_FOR = timedelta(days=7)


def prune() -> Mapping[str, int]:
    """Delete what is over, and return how many rows of each kind went."""
    now = timezone.now()
    audit_since = now - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    doomed = {
        "removed instances": Instance.objects.filter(state=InstanceState.REMOVED, state_since__lt=now - _REMOVED_FOR),
        "sign-in links": LoginLink.objects.filter(expires_at__lt=now - _LINK_FOR),
        "sessions": Session.objects.filter(expire_date__lt=now),
        "audit entries": AuditEntry.objects.filter(at__lt=audit_since),
    }
    return {what: rows.delete()[0] for what, rows in doomed.items()}
