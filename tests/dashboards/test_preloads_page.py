"""Preloading: how far each instance is, what became of each preload and why, who stays out of it."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace
from playwright.async_api import Browser

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services import tenants
from controlplane.fleet.models import Instance
from controlplane.preloading.lifecycle import PreloadState
from controlplane.preloading.models import Preload, Reason
from controlplane.preloading.selectors import opted_out
from controlplane.telemetry.hub import Hub
from router.core.instance import InstanceState
from router.snapshot import HotClassSample
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/instances/+preloads/"
HOT = HotClassSample(
    id="3f2a" * 4,
    model="m",
    prefix_tokens=512,
    requests=50,
    error=0,
    hits=40,
    share=0.5,
    holders=("id-of-gpu-00",),
    ready=2,
    consecutive=3,
    watched=True,
    mitigated=False,
    mitigated_requests=0,
    text_bytes=16_400,
)


def preload(number: int, state: PreloadState = PreloadState.PLANNED, instance: str = "gpu-1", **facts: Any) -> Preload:
    """One preload of an instance that is there."""
    now = timezone.now()
    facts_of_it = {"state": InstanceState.WARMING, "state_since": now, "probe_due_at": now}
    url = f"http://10.0.0.1:80{number:02}"
    row, _ = Instance.objects.get_or_create(name=instance, defaults=facts_of_it | {"url": url})
    settings = {"epoch": row.epoch, "reason": Reason.JOINED, "due_at": timezone.now(), "tokens": 400}
    return Preload.objects.create(
        class_id=f"{number:016x}", instance_id=row.pk, instance_name=instance, state=state, **(settings | facts)
    )


def some_of_each() -> None:
    """Preloads of gpu-1 in every stage, and one of gpu-2."""
    preload(1)
    preload(2, claimed_until=timezone.now() + timedelta(hours=1), attempts=1)
    preload(3, PreloadState.DONE, prompt_tokens=4100, cached_tokens=16, detail="The engine has prefilled it.")
    preload(4, PreloadState.SKIPPED, detail="The instance holds it by now.")
    preload(5, PreloadState.FAILED, attempts=30, detail="No answer within 30 s.")
    preload(6, instance="gpu-2", reason=Reason.WIDEN)


def test_every_stage_is_shown_with_its_reason(signed_in: Client, fresh_hub: Hub) -> None:
    some_of_each()
    text = signed_in.get(PAGE).content.decode()
    assert "1 queued, 1 sending, 1 held, 1 skipped, 1 given up" in text
    assert "3 of 5" in text
    for said in ("The instance holds it by now.", "No answer within 30 s.", "4,100", "about 400", "hot prefix"):
        assert said in text


def test_it_is_filtered_by_instance_and_stage(signed_in: Client, fresh_hub: Hub) -> None:
    some_of_each()
    rows = signed_in.get(f"{PAGE}rows/", {"instance": "gpu-2"}).content.decode()
    assert f"{6:016x}" in rows
    assert f"{1:016x}" not in rows
    rows = signed_in.get(f"{PAGE}rows/", {"stage": "skipped"}).content.decode()
    assert f"{4:016x}" in rows
    assert f"{3:016x}" not in rows
    assert "None matches" in signed_in.get(f"{PAGE}rows/", {"instance": "nobody"}).content.decode()


def test_an_instance_shows_its_own_since_its_cache_was_empty(signed_in: Client, fresh_hub: Hub) -> None:
    some_of_each()
    text = signed_in.get("/instances/gpu-1/").content.decode()
    assert "3 of 5 prefixes have ended" in text
    Instance.objects.filter(name="gpu-1").update(epoch=2)
    assert "Nothing was brought here" in signed_in.get("/instances/gpu-1/preloads/").content.decode()


def test_the_most_frequent_prefixes_are_those_that_workers_report(signed_in: Client, fresh_hub: Hub) -> None:
    assert "No router worker reports a prefix" in signed_in.get(PAGE).content.decode()
    for name in ("router-0", "router-1"):
        fresh_hub.accept(replace(FakeWorker(2, name=name).step(), hot_arrivals=100, hot_classes=(HOT,)))
    text = signed_in.get(f"{PAGE}rows/").content.decode()
    assert "50.0 %" in text
    assert "1 of 2" in text
    assert "16.4kB" in text
    assert "on watch" in text


def test_a_tenant_opts_out_and_everybody_sees_it(signed_in: Client, viewer: Client, fresh_hub: Hub) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    assert "No tenant has opted out" in signed_in.get(PAGE).content.decode()
    assert viewer.post("/tenants/acme/prefixes/").status_code == 403
    text = signed_in.post("/tenants/acme/prefixes/", follow=True).content.decode()
    assert "opted out" in text
    assert opted_out() == {"acme"}
    assert 'href="/tenants/acme/"' in viewer.get(PAGE).content.decode()
    signed_in.post("/tenants/acme/prefixes/", {"keep": "on"})
    assert opted_out() == frozenset()
    assert signed_in.post("/tenants/nobody/prefixes/").status_code == 404


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 1440), ("dark", 360), ("light", 360)])
async def test_it_fits_every_window(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    scheme: str,
    width: int,
) -> None:
    await sync_to_async(some_of_each)()
    fresh_hub.accept(replace(FakeWorker(2).step(), hot_arrivals=100, hot_classes=(HOT,)))
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    await watched.page.goto(f"{web.url}{PAGE}")
    await watched.page.wait_for_selector("text=1 queued, 1 sending")
    await sync_to_async(lambda: Preload.objects.filter(class_id=f"{1:016x}").update(state=PreloadState.DONE))()
    await watched.page.wait_for_selector("text=2 held")
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"preloads-{scheme}-{width}")
    assert watched.complaints == []
