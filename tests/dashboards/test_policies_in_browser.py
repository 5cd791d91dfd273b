"""The policy editor in a real browser: one value as form and JSON, preview while typing, publishing, going back."""

import json
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.policies.models import Policy
from controlplane.policies.presets import GENTLE_COLD_START
from controlplane.policies.services import revisions
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
    await expect(page.locator("#fault-a")).to_have_text(
        "exponent a is -1.0, but it must be a finite number of at least 0"
    )
    await page.fill(JSON, '{"a": 2}')
    await expect(page.locator("#field-a")).to_have_value("2")
    await page.wait_for_selector("#preview .diff:has-text('a')")
    assert await page.locator("#policy-form [aria-invalid=true], #policy-form .field .error").count() == 0
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


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 1440), ("dark", 360), ("light", 360)])
async def test_a_fault_stands_at_its_field(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = watched.page
    await page.goto(f"{web.url}/policies/default/")
    await page.wait_for_selector("#preview:has-text('None: this is what is live.')")
    await page.fill(JSON, '{"b": -1, "weight": 2}')
    await page.wait_for_selector("#content-faults:has-text('weight')")
    assert await page.get_attribute(JSON, "aria-invalid") == "true"
    await page.fill(JSON, '{"b": -1}')
    field = page.locator("#field-b")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(re.compile("busy instances exponent b is -1"))
    await expect(page.locator(JSON)).to_have_attribute("aria-invalid", "false")
    await page.click("text=Keep as draft")
    await expect(field).to_be_focused()
    await expect(field).to_have_value("-1")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await page.wait_for_selector("#preview:has-text('No preview while b is at fault.')")
    assert await page.locator("#loose-faults").count() == 0
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"policy-fault-{scheme}-{width}")
    await field.fill("0.5")
    await page.wait_for_selector("#preview .diff:has-text('b')")
    await expect(page.locator("#fault-b")).to_have_count(0)
    await expect(field).to_have_accessible_description(re.compile("busy instances$"))
    assert [said for said in watched.complaints if "400 (Bad Request)" not in said] == []


async def test_what_was_typed_before_going_back_is_a_change_of_what_was_live_then(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/policies/default/")
    await page.wait_for_selector("#preview:has-text('None: this is what is live.')")
    await page.fill("#field-b", "0")
    await page.goto(f"{web.url}/policies/")
    publish = sync_to_async(revisions.publish)
    await publish(actor=SYSTEM, name="default", message="Meanwhile", content={"a": 2}, expected=1)
    await page.go_back()
    await expect(page.locator(JSON)).to_have_value(re.compile('"b": 0'))
    await page.click("text=Publish…")
    await page.fill("#message", "Of before")
    await page.click("#publish button[value=publish]")
    await expect(page.locator(".conflict")).to_contain_text("Somebody else published revision 2 while you edited")
    await page.click("text=I have seen it")
    await page.wait_for_selector("#preview .diff:has-text('b')")
    assert await page.locator(".conflict").count() == 0
    await page.click("text=Publish…")
    await page.fill("#message", "Seen")
    await page.click("#publish button[value=publish]")
    await page.wait_for_selector(".toast-success:has-text('default@3 is published')")


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
