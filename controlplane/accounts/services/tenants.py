"""Tenants and their keys: made, changed, revoked. Routers learn of each change with the next configuration."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.models import InferenceKey, Tenant
from controlplane.accounts.secret_text import digest, new_secret
from controlplane.accounts.services.audit import record
from controlplane.errors import Invalid, NameTaken, NotFound
from controlplane.publication import configuration_changed
from router.config import KEY_MARK

LIMITS = ("tokens_per_minute", "requests_per_minute", "concurrent")
MOST_KEY_NAME = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PREFIX_LENGTH = len(KEY_MARK) + 8


@transaction.atomic
def create_tenant(*, actor: Actor, name: str, **settings: Any) -> Tenant:
    """Make a tenant; ``settings`` may name ``description``, ``active`` and the :data:`LIMITS`.

    :raises Invalid: for a name or a limit that cannot be.
    :raises NameTaken: when a tenant has the name.
    """
    if not _NAME.fullmatch(name):
        raise Invalid({"name": ["It must be 1 to 64 letters, digits or . _ - and begin with a letter or digit."]})
    _check_limits(settings)
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(name=name, **settings)
    except IntegrityError as error:
        raise NameTaken(f"There is already a tenant named {name}.") from error
    record(actor=actor, action="tenant.create", target=_target(tenant), after=_describe(tenant))
    configuration_changed()
    return tenant


@transaction.atomic
def change_tenant(*, actor: Actor, name: str, **settings: Any) -> Tenant:
    """Change a tenant.

    :raises Invalid: for a limit that cannot be.
    """
    _check_limits(settings)
    tenant = _locked(name)
    before = _describe(tenant)
    for field, value in settings.items():
        setattr(tenant, field, value)
    if _describe(tenant) != before:
        tenant.save()
        record(actor=actor, action="tenant.change", target=_target(tenant), before=before, after=_describe(tenant))
        configuration_changed()
    return tenant


@transaction.atomic
def delete_tenant(*, actor: Actor, name: str) -> None:
    """Delete a tenant and its keys; what it used stays on record."""
    tenant = _locked(name)
    target, before = _target(tenant), _describe(tenant)
    tenant.delete()
    record(actor=actor, action="tenant.delete", target=target, before=before)
    configuration_changed()


@transaction.atomic
def create_key(*, actor: Actor, tenant: str, name: str, expires_at: datetime | None = None) -> tuple[InferenceKey, str]:
    """Make a key, and return its row and its text, which cannot be seen again.

    :raises Invalid: for a blank or too long name, or an end that has passed.
    """
    if not 1 <= len(name.strip()) <= MOST_KEY_NAME:
        raise Invalid({"name": [f"It must be 1 to {MOST_KEY_NAME} characters and not blank."]})
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid({"expires_at": ["It has already passed."]})
    owner = _locked(tenant)
    text = KEY_MARK + new_secret()
    key = InferenceKey.objects.create(
        tenant=owner,
        name=name.strip(),
        prefix=text[:_PREFIX_LENGTH],
        digest=digest(text),
        created_by=actor.label,
        expires_at=expires_at,
    )
    record(actor=actor, action="key.create", target=("key", key.pk, name), after=_describe_key(key))
    configuration_changed()
    return key, text


@transaction.atomic
def revoke_key(*, actor: Actor, tenant: str, key_id: object) -> InferenceKey:
    """End a key; revoking twice changes nothing.

    :raises NotFound: when the tenant has no such key.
    """
    key = InferenceKey.objects.select_for_update(of=("self",)).filter(pk=str(key_id), tenant__name=tenant).first()
    if key is None:
        raise NotFound(f"Tenant {tenant} has no such key.")
    if key.revoked_at is None:
        before = _describe_key(key)
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        target = ("key", key.pk, key.name)
        record(actor=actor, action="key.revoke", target=target, before=before, after=_describe_key(key))
        configuration_changed()
    return key


def _check_limits(settings: Mapping[str, Any]) -> None:
    below = {name: ["It must be at least 1; null is no limit."] for name in LIMITS if settings.get(name) in range(1)}
    if below:
        raise Invalid(below)


def _locked(name: str) -> Tenant:
    tenant = Tenant.objects.select_for_update().filter(name=name).first()
    if tenant is None:
        raise NotFound(f"There is no tenant named {name}.")
    return tenant


def _target(tenant: Tenant) -> tuple[str, object, str]:
    return ("tenant", tenant.pk, tenant.name)


def _describe(tenant: Tenant) -> dict[str, Any]:
    limits = {name: getattr(tenant, name) for name in LIMITS}
    return {"name": tenant.name, "description": tenant.description, "active": tenant.active, **limits}


def _describe_key(key: InferenceKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "prefix": key.prefix,
        "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
        "revoked": key.revoked_at is not None,
    }
