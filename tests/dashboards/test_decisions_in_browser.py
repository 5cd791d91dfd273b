"""The decisions page in a real browser."""

from typing import Any

import pytest
from playwright.async_api import Browser

from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 360)])
async def test_the_explanation_opens_beside_the_list(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    scheme: str,
    width: int,
) -> None:
    worker = FakeWorker(8, 40.0)
    for _ in range(40):
        fresh_hub.accept(worker.step())
    _, second, third = fresh_hub.decisions.recent(3)
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    await watched.page.goto(f"{web.url}/decisions/")
    await watched.page.keyboard.press("j")
    await watched.page.wait_for_url(f"**/decisions/{second.request_id}/")
    await watched.until("(id) => document.querySelector('#detail .facts').textContent.includes(id)", second.request_id)
    await watched.page.locator("#detail #decision-canvas").hover()
    await watched.page.locator("[data-walk] .row-link").nth(2).click()
    await watched.page.wait_for_url(f"**/decisions/{third.request_id}/")
    await watched.until("(id) => document.querySelector('#detail .facts').textContent.includes(id)", third.request_id)
    assert await watched.page.locator("[data-walk] tr[aria-selected=true]").count() == 1
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"decisions-{scheme}-{width}")
    fresh_hub.accept(worker.step())
    await watched.page.wait_for_selector(".newer a")
    assert watched.complaints == []
