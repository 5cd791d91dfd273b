"""The policy editor in a real browser: one value as form and JSON, preview while typing, publishing, going back."""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from controlplane.policies.models import Policy
from controlplane.policies.presets import GENTLE_COLD_START
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
JSON = "#policy-content"


async def test_from_typing_to_published_and_back(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    worker = FakeWorker(4, 80.0)
    for _ in range(60):
        fresh_hub.accept(worker.step())
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/policies/default/")
    await page.wait_for_selector("#preview:has-text('None: this is what is live.')")
    await page.fill("#field-b", "0")
    assert json.loads(await page.input_value(JSON))["b"] == 0
    await page.wait_for_selector("#preview .diff:has-text('b')")
    assert not (await watched.text("#preview .preview-part:last-child strong")).startswith("0 of")
    await page.select_option("#field-cold_start", label="as published")
    assert json.loads(await page.input_value(JSON))["cold_start"] == {}
    await page.select_option("#field-cold_start", label="gentle (recommended)")
    assert json.loads(await page.input_value(JSON))["cold_start"] == GENTLE_COLD_START
    await page.select_option("#field-cold_start", label="off")
    assert "cold_start" not in json.loads(await page.input_value(JSON))
    await page.fill(JSON, '{"a": -1}')
    await page.wait_for_selector("#preview .toast-error")
    await page.fill(JSON, '{"a": 2}')
    await expect(page.locator("#field-a")).to_have_value("2")
    await page.wait_for_selector("#preview .diff:has-text('a')")
    await watched.keep_screenshot("policy-editor")
    await page.click("text=Publish…")
    await page.fill("#message", "Prefer cache hits")
    await page.click("#publish button[value=publish]")
    await page.wait_for_selector(".toast-success:has-text('default@2 is published')")
    policy = await Policy.objects.select_related("live").aget(name="default")
    assert policy.live is not None
    assert policy.live.content == {"a": 2}
    await page.fill("#back-1", "It was worse")
    await page.click("text=Go back to @1")
    await page.wait_for_selector(".toast-success:has-text('it restores revision 1')")
    assert watched.complaints == []


async def test_the_palette_leads_anywhere(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/workloads/")
    await page.keyboard.press("Control+k")
    await page.wait_for_selector("#palette-list li:has-text('Decisions')")
    await page.keyboard.type("polic def")
    await page.wait_for_selector("#palette-list li[aria-selected=true]:has-text('default')")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/policies/default/")
    await page.keyboard.press("?")
    await page.wait_for_selector("#help[open]")
    await watched.keep_screenshot("help")
    await page.keyboard.press("Escape")
    assert not await page.is_visible("#help")
    assert watched.complaints == []
