"""Tenants, their keys, and what routers are told of them."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.accounts.models import AuditEntry, InferenceKey, Tenant, TenantUsage
from controlplane.accounts.secret_text import digest
from controlplane.accounts.services import tenants
from controlplane.accounts.services.usage import UsageKey, add_usage
from controlplane.bridge.publisher import current, newest_number
from controlplane.errors import Invalid, NameTaken
from router.config import ConfigDocument, parse_config
from tests.controlplane.conftest import ACTOR

pytestmark = pytest.mark.django_db
LIST = "/api/v1/tenants/"


def told() -> ConfigDocument:
    """Return what routers are told."""
    return parse_config(current()[1])


def test_limits_and_keys_reach_routers_and_the_text_of_a_key_does_not() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme", tokens_per_minute=1000, concurrent=4)
    key, text = tenants.create_key(actor=ACTOR, tenant="acme", name="prod")
    document = told()
    (tenant,) = document.tenants
    assert (tenant.tokens_per_minute, tenant.requests_per_minute, tenant.concurrent) == (1000, None, 4)
    (known,) = document.keys
    assert (known.id, known.digest, known.tenant) == (str(key.pk), digest(text), "acme")
    secret = text.removeprefix(key.prefix)
    assert secret.encode() not in current()[1]
    assert not any(secret in str(row) for row in InferenceKey.objects.values())


def test_a_revoked_key_is_gone_from_the_next_document() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme")
    key, _ = tenants.create_key(actor=ACTOR, tenant="acme", name="prod")
    before = newest_number()
    tenants.revoke_key(actor=ACTOR, tenant="acme", key_id=key.pk)
    assert newest_number() == before + 1
    assert told().keys == ()
    tenants.revoke_key(actor=ACTOR, tenant="acme", key_id=key.pk)
    assert AuditEntry.objects.filter(action="key.revoke").count() == 1


def test_the_keys_of_a_tenant_that_is_not_active_are_gone_too() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme")
    tenants.create_key(actor=ACTOR, tenant="acme", name="prod")
    tenants.change_tenant(actor=ACTOR, name="acme", active=False)
    assert told().keys == ()


def test_an_expiry_is_told_so_that_routers_need_no_news() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme")
    end = timezone.now() + timedelta(hours=1)
    tenants.create_key(actor=ACTOR, tenant="acme", name="prod", expires_at=end)
    assert told().keys[0].expires_unix_s == pytest.approx(end.timestamp())


def test_deleting_a_tenant_takes_its_keys_and_keeps_what_it_used() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme")
    tenants.create_key(actor=ACTOR, tenant="acme", name="prod")
    add_usage({UsageKey("acme", "chat", timezone.now()): (1, 0, 0, 0)})
    tenants.delete_tenant(actor=ACTOR, name="acme")
    assert (told().tenants, told().keys) == ((), ())
    assert TenantUsage.objects.count() == 1


def test_names_limits_and_ends_that_cannot_be_are_refused() -> None:
    tenants.create_tenant(actor=ACTOR, name="acme")
    with pytest.raises(NameTaken):
        tenants.create_tenant(actor=ACTOR, name="acme")
    with pytest.raises(Invalid, match="name"):
        tenants.create_tenant(actor=ACTOR, name="a b")
    with pytest.raises(Invalid, match="concurrent"):
        tenants.change_tenant(actor=ACTOR, name="acme", concurrent=0)
    with pytest.raises(Invalid, match="passed"):
        tenants.create_key(actor=ACTOR, tenant="acme", name="x", expires_at=timezone.now())


def test_usage_adds_up() -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for _ in range(2):
        add_usage({UsageKey("acme", "chat", hour): (2, 1, 100, 10)})
    row = TenantUsage.objects.get()
    assert (row.requests, row.refused, row.prompt_tokens, row.output_tokens) == (4, 2, 200, 20)


def test_over_rest(admin: APIClient) -> None:
    assert admin.post(LIST, {"name": "acme", "tokens_per_minute": 1000}).status_code == 201
    assert admin.patch(f"{LIST}acme/", {"tokens_per_minute": None}).json()["tokens_per_minute"] is None
    made = admin.post(f"{LIST}acme/keys/", {"name": "prod"}).json()
    assert made["key"].startswith(made["prefix"])
    (listed,) = admin.get(f"{LIST}acme/keys/").json()["results"]
    assert "key" not in listed
    assert admin.delete(f"{LIST}acme/keys/{made['id']}/").json()["revoked_at"] is not None
    add_usage({UsageKey("acme", "chat", timezone.now()): (3, 0, 0, 0)})
    assert admin.get(f"{LIST}acme/usage/").json()["results"][0]["requests"] == 3
    assert admin.delete(f"{LIST}acme/").status_code == 204
    assert admin.get(f"{LIST}acme/").status_code == 404
    assert not Tenant.objects.exists()
    assert admin.post(LIST, {"name": "x", "concurrent": 0}).json()["errors"][0]["field"] == "concurrent"
