"""Pages without a browser test of their own fit every window, and complain about nothing."""

from typing import Any

import pytest
from django.utils import timezone
from playwright.async_api import Browser

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services import tenants
from controlplane.aliases.services import put_alias
from controlplane.aliases.target import Target
from controlplane.fleet.models import Instance
from controlplane.policies.models import ShadowHour, ShadowMoveHour
from controlplane.policies.services import revisions
from controlplane.policies.services.workloads import create_workload
from controlplane.slos.services import put_slo
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases="__all__")]

LONG = "w" * 58
INSTANCE = "g" * 100

PAGES = {
    "instance-long": f"/instances/{INSTANCE}/",
    "policy-long": f"/policies/{LONG}/",
    "tenant-long": f"/tenants/{LONG}/",
    "workload-long": f"/workloads/{LONG}/",
    "policies": "/policies/default/",
    "workloads": "/workloads/",
    "shadow": "/workloads/default/shadow/",
    "settings": "/settings/",
    "slos": "/slos/",
    "tenants": "/tenants/acme/",
    "audit": "/audit/",
    "silences": "/alerts/silences/",
    "channels": "/alerts/channels/",
    "new-channel": "/alerts/channels/+new/email/",
    "lab": "/lab/",
    "register": "/instances/+new/",
    "preloads": "/instances/+preloads/",
}


@pytest.fixture
def rows(transactional_db: None) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme", tokens_per_minute=60_000)
    put_slo(actor=SYSTEM, workload="default", ttft_s=2.0)
    _long_names()
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    pair = {"workload": "default", "live_policy": "a-long-name-of-a-policy@12", "shadow_policy": "another-one@345"}
    ShadowHour.objects.create(**pair, hour=hour, decisions=1_234_567, differs=617)
    ShadowMoveHour.objects.create(**pair, hour=hour, live="engine-with-a-name-1", shadow="engine-2", decisions=617)
    split = [Target("Qwen/Qwen3-235B-A22B-Instruct-2507", 95.0), Target("Qwen/Qwen3-32B-FP8", 5.0)]
    put_alias(actor=SYSTEM, name="team/chat", targets=split, description="What most ask for, and a canary.")


def _long_names() -> None:
    now = timezone.now()
    revisions.create_policy(actor=SYSTEM, name=LONG, content={"b": 2.0})
    create_workload(actor=SYSTEM, name=LONG, policy=LONG, match={"models": ["x" * 200]}, description="y" * 500)
    put_slo(actor=SYSTEM, workload=LONG, ttft_s=1e-6, tpot_s=3600.0)
    tenants.create_tenant(actor=SYSTEM, name=LONG, tokens_per_minute=2**31 - 1, description="שלום " * 60)
    tenants.create_key(actor=SYSTEM, tenant=LONG, name="k" * 100)
    Instance.objects.create(
        name=INSTANCE,
        url=f"http://{'very-long-host.' * 30}example:8000",
        state_since=now,
        state_reason="r" * 500,
        probe_due_at=now,
        probe_reasons=["x" * 500],
        served_models=["m" * 253],
        labels={"z" * 253: "z" * 253},
        kv_capacity_tokens=2**62,
    )


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [360, 1440])
async def test_they_fit(
    rows: None,
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    scheme: str,
    width: int,
) -> None:
    fresh_hub.accept(FakeWorker(4, 80.0).step())
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    for name, path in PAGES.items():
        await watched.page.goto(web.url + path)
        await watched.page.wait_for_load_state("load")
        assert await watched.overflow_px() == 0, path
        rail = await watched.page.locator(".rail").bounding_box()
        assert rail is not None
        assert width > 760 or rail["height"] < 100, "the rail is a bar on narrow windows, however short the page is"
        await watched.keep_screenshot(f"{name}-{scheme}-{width}")
    assert watched.complaints == []
