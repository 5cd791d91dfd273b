"""The decisions page in a real browser."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from msgspec.structs import replace
from playwright.async_api import Browser, Route

from controlplane.decisions.keeping import keep
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.answering_workers import have_answers
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases="__all__")]


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


async def test_an_explanation_gives_way_to_a_newer_one_of_the_same_id(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = FakeWorker(8, 40.0)
    fresh_hub.accept(worker.step())
    newest = fresh_hub.decisions.newest()
    assert newest is not None
    winner, second = newest.candidates[:2]
    older = replace(newest, request_id="again", time_unix_s=1_000.0)
    newer = replace(older, time_unix_s=1_060.0, chosen=second.instance, candidates=(second, winner))
    await sync_to_async(keep)(older)
    have_answers(monkeypatch, {worker.name: newer})
    watched = await open_page(chromium, session_cookie)
    answer = await watched.page.goto(f"{web.url}/decisions/again/")
    assert answer is not None
    assert f'<span class="chosen">{older.chosen}' in await answer.text()
    await watched.until("() => document.querySelector('#detail').textContent.includes('The id was used again')")
    assert await watched.text("#detail h2 .chosen") == newer.chosen
    await watched.page.locator("#detail #decision-canvas").hover()
    await watched.keep_screenshot("decision-of-an-id-used-again")
    assert watched.complaints == []


async def test_what_an_explanation_asked_for_comes_too_late_when_another_one_was_opened(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = FakeWorker(8, 40.0)
    for _ in range(10):
        fresh_hub.accept(worker.step())
    first, second = fresh_hub.decisions.recent(2)
    have_answers(monkeypatch, {worker.name: replace(first, time_unix_s=first.time_unix_s + 60.0)})
    has_moved_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await has_moved_on.wait()
        await route.continue_()

    watched = await open_page(chromium, session_cookie)
    asked = f"/decisions/{first.request_id}/?after="
    await watched.page.route(lambda url: asked in url, hold)
    await watched.page.add_init_script(
        "document.addEventListener('htmx:beforeSwap', (event) => (window.answers ??= []).push(event), true)"
    )
    await watched.page.goto(f"{web.url}/decisions/{first.request_id}/")
    async with watched.page.expect_request(lambda request: asked in request.url):
        pass
    await watched.page.locator("[data-walk] .row-link").nth(1).click()
    await watched.until("(id) => document.querySelector('#detail .facts').textContent.includes(id)", second.request_id)
    has_moved_on.set()
    await watched.until(
        "(asked) => answers.some((one) => one.detail.pathInfo.requestPath.startsWith(asked) && one.defaultPrevented)",
        asked,
    )
    assert second.request_id in await watched.text("#detail .facts")
    assert watched.complaints == []
