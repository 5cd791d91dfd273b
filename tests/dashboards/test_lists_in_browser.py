"""Long lists: searched as one types, with the open entry in sight, and what opens is in sight on narrow windows too."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import TenantUsage
from controlplane.accounts.services import tenants
from controlplane.fleet.models import Instance
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "t" * 64


def _tenants() -> None:
    for number in range(60):
        tenants.create_tenant(actor=SYSTEM, name=f"team-{number:02}")
    tenants.create_tenant(actor=SYSTEM, name=LONG)


async def test_a_list_is_searched_and_shows_what_is_open(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    await sync_to_async(_tenants)()
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/tenants/team-58/")
    await expect(page.locator("tr[aria-selected=true]")).to_be_in_viewport()
    await page.keyboard.press("/")
    await page.keyboard.type("team-1")
    await expect(page.locator("[data-walk] tbody tr:visible")).to_have_count(10)
    await page.locator("#find").fill(LONG[:20])
    cut = page.locator("[data-walk] td:visible").first
    await cut.hover()
    await expect(cut).to_have_attribute("title", LONG)
    assert watched.complaints == []


async def test_what_opens_is_brought_into_sight(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    now = timezone.now()
    for number in range(40):
        name = f"gpu-{number:02}"
        await Instance.objects.acreate(name=name, url="http://10.0.0.7:8000", state_since=now, probe_due_at=now)
    watched = await open_page(chromium, session_cookie, viewport={"width": 360, "height": 700})
    page = watched.page
    await page.goto(f"{web.url}/instances/")
    await page.click("text=gpu-39")
    await expect(page.locator("#detail .card-head h2:has-text('gpu-39')")).to_be_in_viewport()


async def test_a_filter_says_what_is_shown_after_going_back(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    now = timezone.now()
    await Instance.objects.acreate(name="gpu-00", url="http://10.0.0.7:8000", state_since=now, probe_due_at=now)
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/instances/")
    await page.locator("#state").select_option("registered")
    await page.wait_for_url("**/instances/?*state=registered*")
    await page.go_back()
    await page.wait_for_url("**/instances/")
    await expect(page.locator("#state")).to_have_value("")
    assert watched.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 360)])
async def test_what_a_tenant_uses_is_charted_as_it_comes(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    await sync_to_async(tenants.create_tenant)(actor=SYSTEM, name="acme")
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = watched.page
    await page.goto(f"{web.url}/tenants/acme/")
    await page.fill("#tokens", "4711")
    chart = page.locator("[data-figure=figure-use]")
    await expect(chart).to_contain_text("Nothing was used yet.")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    row = await TenantUsage.objects.acreate(
        tenant="acme", workload="default", hour=hour, prompt_tokens=700, output_tokens=30
    )
    await expect(chart.locator(".bars .point")).to_have_count(2)
    drawn = "() => document.querySelector('[data-figure=figure-use]').data.map((trace) => trace.y.at(-1))"
    assert await page.evaluate(drawn) == [700, 30]
    row.prompt_tokens = 1_900
    await row.asave()
    await watched.until(f"() => ({drawn})()[0] === 1900")
    assert await page.input_value("#tokens") == "4711", "what is being typed stays"
    await watched.keep_screenshot(f"tenant-use-{scheme}-{width}")
    assert watched.complaints == []


async def test_a_list_is_not_asked_for_while_nobody_sees_it(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    now = timezone.now()
    made = await Instance.objects.acreate(name="gpu-00", url="http://10.0.0.7:8000", state_since=now, probe_due_at=now)
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.add_init_script(
        "addEventListener('htmx:beforeRequest', ({ defaultPrevented, detail }) => "
        "(window.asked ??= []).push([detail.pathInfo.requestPath, !defaultPrevented]));"
        "Object.defineProperty(document, 'hidden', { get: () => window.isUnseen === true });"
    )
    await page.goto(f"{web.url}/instances/")
    rows = "(asked) => window.asked?.some(([path, isSent]) => path.startsWith('/instances/+rows/') && isSent === asked)"
    await watched.until(rows, True)
    await page.evaluate("() => { window.isUnseen = true; window.asked = []; }")
    await watched.until(rows, False)
    assert not await page.evaluate(rows, True)
    made.name = "renamed"
    await made.asave()
    await page.evaluate("() => { window.isUnseen = false; }")
    await expect(page.locator(".row-link")).to_have_text("renamed")
    assert watched.complaints == []
