"""The dialog of a model name, and keeping admission, in a real browser."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, expect

from controlplane.admission.selectors import admission
from controlplane.aliases.selectors import alias_named
from controlplane.aliases.target import Target
from controlplane.telemetry.hub import Hub
from tests.dashboards.test_accessibility import AXE, RUN
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROW = "#alias-form [data-target]"


async def test_a_split_is_put_together_row_by_row(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    fresh_hub.accept(FakeWorker(4, 40.0).step())
    watched = await open_page(chromium, session_cookie, reduced_motion="reduce")
    page = watched.page
    await page.goto(f"{web.url}/workloads/")
    await page.get_by_role("button", name="New name…").click()
    await page.fill("#alias-name", "chat")
    await page.fill(f"{ROW} [name=model]", "old")
    await expect(page.locator(f"{ROW} [data-share]").first).to_have_text("100.0 %")
    assert await page.is_disabled(f"{ROW} [data-remove-target]"), "one model stays"
    for model, weight in (("new", "1"), ("spare", "many")):
        await page.click("[data-add-target]")
        await page.locator(f"{ROW} [name=model]").last.fill(model)
        await page.locator(f"{ROW} [name=weight]").last.fill(weight)
    await page.locator(f"{ROW} [name=weight]").first.fill("3")
    assert await page.locator(f"{ROW} [data-share]").all_text_contents() == ["75.0 %", "25.0 %", "–"]
    await page.get_by_role("button", name="Create").click()
    await page.get_by_text("The weight must be a number.").wait_for()
    await page.evaluate(AXE.read_text())
    assert await page.evaluate(RUN) == []
    await page.locator(f"{ROW} [data-remove-target]").last.click()
    await page.get_by_role("button", name="Create").click()
    await page.get_by_text("chat is kept").wait_for()
    await expect(watched.page.locator("[aria-labelledby=names-title]").first).to_contain_text("75.0 %")
    made = await sync_to_async(alias_named)("chat")
    assert made.split == (Target("old", 3.0), Target("new", 1.0))
    await page.get_by_role("button", name="chat").click()
    await page.wait_for_selector("#alias-description")
    assert await page.locator(f"{ROW} [data-share]").all_text_contents() == ["75.0 %", "25.0 %"]
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog", name="This cannot be taken back").get_by_role("button", name="Delete").click()
    await page.get_by_text("chat is deleted").wait_for()
    assert watched.complaints == []


async def test_admission_is_kept_in_place(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/workloads/")
    for requests in ("8", "16"):
        await page.fill("[name=instance_requests]", requests)
        await page.locator("#admission").get_by_role("button", name="Keep").click()
        await page.locator(f"#admission [name=instance_requests][value='{requests}']").wait_for()
    assert (await sync_to_async(admission)()).instance_requests == 16
    await expect(watched.page.locator("#admission").first).to_contain_text("revision 2")
    assert watched.complaints == []
