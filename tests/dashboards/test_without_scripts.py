"""Without scripts: pages say what stands still, dialogs stand open, and nothing empty or false is shown."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from controlplane.accounts.models import Tenant
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


async def test_forms_of_dialogs_can_be_sent_refused_and_sent_again(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie, java_script_enabled=False)
    page = watched.page
    await page.goto(f"{web.url}/tenants/")
    await page.fill("#new-tenant-name", "no good!")
    await page.click("#new-tenant button[type=submit]")
    await expect(page.locator("[name=name]")).to_have_value("no good!")
    await expect(page.locator(".error")).to_contain_text("letters, digits")
    await page.fill("[name=name]", "acme")
    await page.click("text=Send again")
    await page.wait_for_url("**/tenants/acme/")
    assert await Tenant.objects.filter(name="acme").aexists()


async def test_the_live_page_has_its_numbers_and_says_where_the_rest_is(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    fresh_hub.accept(FakeWorker(4, 80.0).step())
    watched = await open_page(chromium, session_cookie, java_script_enabled=False)
    page = watched.page
    await page.goto(f"{web.url}/")
    await expect(page.locator("#live noscript p")).to_be_visible()
    await expect(page.locator("#strip")).to_be_visible()
    for empty in ("#plane", ".history", "#instances", "#range-dialog", "#help", "#confirm", "#pause"):
        await expect(page.locator(empty)).to_be_hidden()


async def test_a_workload_is_opened_at_its_own_address(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie, java_script_enabled=False)
    page = watched.page
    await page.goto(f"{web.url}/workloads/")
    await page.click("#workloads a:has-text('default')")
    await page.fill("[aria-labelledby=edit-title] [name=description]", "What most ask for")
    await page.click("[aria-labelledby=edit-title] button:has-text('Keep')")
    await expect(page.locator(".toast-success")).to_contain_text("default is kept")
