"""Audit, SLOs and tenants: what is shown, what may be changed, and what is shown only once."""

import re
from datetime import datetime

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import InferenceKey, Tenant, TenantUsage
from controlplane.accounts.services import tenants
from controlplane.policies.services import revisions
from controlplane.slos.models import Slo, SloMinute
from controlplane.telemetry.hub import Hub

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("path", ["/audit/", "/audit/1/", "/slos/", "/tenants/", "/tenants/acme/"])
def test_strangers_are_sent_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/login/?next=")


def test_the_audit_log_shows_who_changed_what(signed_in: Client, fresh_hub: Hub) -> None:
    edit = {"wish": "publish", "content": '{"b": 0.5}', "expected": 1, "message": "Softer"}
    signed_in.post("/policies/default/edit/", edit)
    text = signed_in.get("/audit/", {"q": "policy.publish"}).content.decode()
    assert "ada" in text
    (entry,) = set(re.findall(r'href="(/audit/\d+/)"', text))
    detail = signed_in.get(entry, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in detail
    assert "Softer" in detail
    assert "<del>1.0</del>" in detail
    assert "<ins>0.5</ins>" in detail


def test_the_audit_log_is_filtered_and_paged(signed_in: Client, fresh_hub: Hub) -> None:
    for number in range(60):
        tenants.create_tenant(actor=SYSTEM, name=f"t{number:02}")
    first = signed_in.get("/audit/", {"kind": "tenant"}).content.decode()
    assert "1 to 50 of 60" in first
    assert "kind=tenant&page=2" in first.replace("&amp;", "&")
    assert "51 to 60 of 60" in signed_in.get("/audit/", {"kind": "tenant", "page": "2"}).content.decode()
    assert "No change matches" in signed_in.get("/audit/", {"q": "nothing like this"}).content.decode()
    assert signed_in.get("/audit/999999/").status_code == 404


def test_targets_are_set_measured_and_taken_away(signed_in: Client, fresh_hub: Hub) -> None:
    assert "No targets yet" in signed_in.get("/slos/").content.decode()
    form = {"workload": "default", "ttft_s": "2", "ttft_percentile": "95", "tpot_s": "", "tpot_percentile": "95"}
    signed_in.post("/slos/+put/", form)
    slo = Slo.objects.get()
    assert (slo.ttft_s, slo.tpot_s) == (2.0, None)
    minute = int(timezone.now().timestamp() // 60) - 1
    SloMinute.objects.create(
        slo=slo, minute=minute, requests=200, errors=0, ttft_counted=200, ttft_good=180.0, tpot_counted=0, tpot_good=0.0
    )
    text = signed_in.get("/slos/").content.decode()
    assert "90.0 %" in text
    assert "2.00×" in text, "10 % missed of 5 % allowed burns the budget twice as fast"
    assert 'data-figure="figure-' in text
    assert "90.0 %" in signed_in.get("/slos/default/+attained/").content.decode()
    signed_in.post("/slos/default/delete/")
    assert not Slo.objects.exists()
    assert signed_in.get("/slos/default/+attained/").status_code == 404


@pytest.mark.parametrize("changes", [{"ttft_s": "-1"}, {"ttft_s": ""}, {"workload": "nobody"}, {"ttft_s": "fast"}])
def test_targets_that_cannot_be_are_refused(signed_in: Client, fresh_hub: Hub, changes: dict[str, str]) -> None:
    form = {"workload": "default", "ttft_s": "2", "ttft_percentile": "95"} | changes
    assert 'role="alert"' in signed_in.post("/slos/+put/", form).content.decode()
    assert not Slo.objects.exists()


def test_a_tenant_gets_limits(signed_in: Client, fresh_hub: Hub) -> None:
    signed_in.post("/tenants/+new/", {"name": "acme"})
    form = {"tokens_per_minute": "60000", "requests_per_minute": "", "concurrent": "8", "active": "on"}
    text = signed_in.post("/tenants/acme/change/", form, follow=True).content.decode()
    tenant = Tenant.objects.get(name="acme")
    assert (tenant.tokens_per_minute, tenant.requests_per_minute, tenant.concurrent) == (60_000, None, 8)
    assert "60k" in text
    refused = signed_in.post("/tenants/acme/change/", form | {"concurrent": "0"}, follow=True).content.decode()
    assert "at least 1" in refused


def test_a_key_is_shown_once(signed_in: Client, fresh_hub: Hub) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    answer = signed_in.post("/tenants/acme/keys/", {"key_name": "ci"})
    text = answer.content.decode()
    secret = text.split('id="snippet-key">')[1].split("<")[0]
    key = InferenceKey.objects.get()
    assert answer.status_code == 201
    assert "no-store" in answer["Cache-Control"]
    assert secret.startswith(key.prefix)
    again = signed_in.get("/tenants/acme/").content.decode()
    assert secret not in again
    assert key.prefix in again
    signed_in.post(f"/tenants/acme/keys/{key.pk}/")
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_use_is_charted(signed_in: Client, fresh_hub: Hub) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    assert "Nothing was used yet" in signed_in.get("/tenants/acme/").content.decode()
    assert ">null<" in signed_in.get("/tenants/acme/use/").content.decode()
    hour = datetime.fromisoformat("2026-01-01T10:00:00+00:00")
    TenantUsage.objects.create(tenant="acme", workload="default", hour=hour, prompt_tokens=700, output_tokens=30)
    for path in ("/tenants/acme/", "/tenants/acme/use/"):
        text = signed_in.get(path).content.decode()
        assert '"y":[700.0]' in text
        assert '"y":[30.0]' in text
    assert signed_in.get("/tenants/none/use/").status_code == 404


def test_viewers_see_but_cannot_change(viewer: Client, fresh_hub: Hub) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    assert "Your role may look, but not change tenants." in viewer.get("/tenants/acme/").content.decode()
    for path in ("/tenants/+new/", "/tenants/acme/change/", "/tenants/acme/keys/", "/slos/+put/", "/slos/x/delete/"):
        assert viewer.post(path).status_code == 403
    revisions.create_policy(actor=SYSTEM, name="other", content={})
    assert viewer.get("/audit/").status_code == 200
