"""What reads rows of the accounts app."""

from django.db.models import QuerySet

from controlplane.accounts.models import ApiToken, AuditEntry, InferenceKey, Tenant, TenantUsage, User
from controlplane.errors import NotFound


def tokens() -> QuerySet[ApiToken]:
    """Return all tokens, newest first, with their makers."""
    return ApiToken.objects.select_related("created_by")


def audit_entries() -> QuerySet[AuditEntry]:
    """Return the audit log, newest first."""
    return AuditEntry.objects.select_related("user")


def users() -> QuerySet[User]:
    """Return all people, by name."""
    return User.objects.all()


def user_named(username: str) -> User:
    """Return a person.

    :raises NotFound: when there is nobody of that name.
    """
    user = users().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is nobody named {username}.")
    return user


def tenants() -> QuerySet[Tenant]:
    """Return all tenants, by name."""
    return Tenant.objects.all()


def tenant_named(name: str) -> Tenant:
    """Return a tenant.

    :raises NotFound: when there is none of that name.
    """
    tenant = tenants().filter(name=name).first()
    if tenant is None:
        raise NotFound(f"There is no tenant named {name}.")
    return tenant


def usable_keys() -> QuerySet[InferenceKey]:
    """Return the keys that are not revoked, of tenants that are active."""
    return InferenceKey.objects.select_related("tenant").filter(revoked_at=None, tenant__active=True)


def usage(tenant: str) -> QuerySet[TenantUsage]:
    """Return what a tenant used, newest hour first."""
    return TenantUsage.objects.filter(tenant=tenant)
