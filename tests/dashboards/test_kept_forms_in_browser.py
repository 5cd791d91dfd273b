"""Forms in a real browser: refused, they keep what was typed, say what is wrong at the field, and can be sent again."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from controlplane.accounts.models import Tenant
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


async def test_a_dialog_keeps_what_was_typed_until_it_is_taken(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/workloads/")
    await page.click("button:has-text('New workload…')")
    dialog = page.locator("#new-workload")
    name, rule = dialog.locator("[name=name]"), dialog.locator("[name=match]")
    await name.fill("no good!")
    await rule.fill('{"paths": ["/v1/chat/*"]}')
    await dialog.locator("button:has-text('Create')").click()
    await expect(dialog.locator(".field:has([name=name]) .error")).to_contain_text("letters, digits")
    await expect(name).to_be_focused()
    await expect(name).to_have_attribute("aria-invalid", "true")
    await expect(rule).to_have_value('{"paths": ["/v1/chat/*"]}')
    await watched.keep_screenshot("form-refused")
    await name.fill("chats")
    await expect(dialog.locator(".error")).to_have_count(0)
    await dialog.locator("button:has-text('Create')").click()
    await page.wait_for_selector(".toast-success:has-text('chats is kept')")
    assert all("status of 400" in one for one in watched.complaints), watched.complaints


async def test_a_server_that_is_away_loses_nothing_either(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/tenants/")
    await page.click("button:has-text('New tenant…')")
    dialog = page.locator("#new-tenant")
    await dialog.locator("[name=name]").fill("acme")
    await page.route("**/tenants/+new/", lambda route: route.abort())
    await dialog.locator("button:has-text('Create')").click()
    await expect(dialog.locator(".form-error")).to_contain_text("could not be reached")
    await expect(dialog.locator("[name=name]")).to_have_value("acme")
    await page.unroute("**/tenants/+new/")
    await dialog.locator("button:has-text('Create')").click()
    await page.wait_for_url("**/tenants/acme/")
    assert await Tenant.objects.filter(name="acme").aexists()
