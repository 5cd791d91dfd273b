"""Ages, and what is asked for again: true while a page stands, and left alone where nothing changed."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import InferenceKey
from controlplane.accounts.services import tenants
from controlplane.fleet.models import Instance
from controlplane.slos import services
from controlplane.slos.models import SloMinute
from controlplane.telemetry.hub import Hub
from dashboards.templatetags.numbers import age
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
POLLED_MS = 11_000


async def test_an_age_goes_on_while_the_page_stands(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    await sync_to_async(_key)()
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.clock.install()
    await page.goto(f"{web.url}/tenants/acme/")
    made = page.locator("[aria-labelledby=keys-title] time[data-age]").first
    await expect(made).to_have_text("30 min")
    await page.clock.run_for(timedelta(minutes=3) // timedelta(milliseconds=1))
    await expect(made).to_have_text("33 min")
    await made.hover()
    assert "local time" in (await made.get_attribute("title") or "")


def _key() -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    tenants.create_key(actor=SYSTEM, tenant="acme", name="one")
    InferenceKey.objects.update(created_at=timezone.now() - timedelta(minutes=30))


async def test_ages_are_written_alike_by_server_and_script(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(f"{web.url}/audit/")
    url = await watched.page.locator("script[src*=shell]").get_attribute("src") or ""
    ages = [-1.0, 0.0, 0.4, 59.6, 119.4, 119.9, 121.0, 7_199.0, 7_201.0, 172_799.0, 172_801.0, 9e6]
    said = await watched.page.evaluate(
        "async ([url, ages]) => (await import(url)).ageText && ages.map((await import(url)).ageText)",
        [url.replace("shell", "times"), ages],
    )
    assert said == [age(one) for one in ages]


async def test_what_did_not_change_is_left_alone(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    instance = await Instance.objects.acreate(
        name="gpu-00",
        url="http://10.0.0.7:8000",
        engine="vllm",
        state_since=timezone.now(),
        probe_due_at=timezone.now(),
    )
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/instances/gpu-00/")
    await page.evaluate("() => { window.kept = document.querySelector('#instance-probe dl'); }")
    probed = timezone.now() - timedelta(seconds=77)
    await Instance.objects.filter(pk=instance.pk).aupdate(probed_at=probed, probe_ok=True)
    await expect(page.locator("#instance-probe")).to_contain_text("passed")
    await page.evaluate("() => { window.kept = document.querySelector('#instance-probe dl'); }")
    await Instance.objects.filter(pk=instance.pk).aupdate(probed_at=timezone.now() - timedelta(hours=9))
    await expect(page.locator("#instance-probe .card-note")).to_have_text("9 h ago")
    assert await page.evaluate("() => window.kept.isConnected")
    await Instance.objects.filter(pk=instance.pk).aupdate(engine="sglang")
    await expect(page.locator("#instance-probe")).to_contain_text("sglang")
    assert not await page.evaluate("() => window.kept.isConnected")
    assert watched.complaints == []


async def test_attainment_and_its_chart_follow_the_minutes(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    slo, _ = await sync_to_async(services.put_slo)(
        actor=SYSTEM, workload="default", ttft_s=2.0, ttft_percentile=95.0, tpot_s=None, tpot_percentile=95.0
    )
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.clock.install()
    await page.goto(f"{web.url}/slos/")
    await expect(page.locator("[data-figure]")).to_contain_text("the chart begins with the first")
    minute = int(timezone.now().timestamp() // 60) - 1
    counted = {
        "requests": 200,
        "errors": 0,
        "ttft_counted": 200,
        "ttft_good": 180.0,
        "tpot_counted": 0,
        "tpot_good": 0.0,
    }
    for number in range(2):
        await SloMinute.objects.acreate(slo=slo, minute=minute - number, **counted)
        await page.clock.run_for(POLLED_MS)
        await expect(page.locator("main tbody td.number").first).to_have_text(str(200 * (number + 1)))
        await expect(page.locator(".js-plotly-plot .scatterlayer .point")).to_have_count(number + 1)
    await expect(page.locator("[data-figure]")).not_to_contain_text("the chart begins")
    assert watched.complaints == []
