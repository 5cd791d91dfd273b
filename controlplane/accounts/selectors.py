"""What reads rows of the accounts app."""

from django.db.models import QuerySet

from controlplane.accounts.models import ApiToken, AuditEntry, User


def tokens() -> QuerySet[ApiToken]:
    """Return all tokens, newest first, with their makers."""
    return ApiToken.objects.select_related("created_by")


def audit_entries() -> QuerySet[AuditEntry]:
    """Return the audit log, newest first."""
    return AuditEntry.objects.select_related("user")


def users() -> QuerySet[User]:
    """Return all people, by name."""
    return User.objects.all()
