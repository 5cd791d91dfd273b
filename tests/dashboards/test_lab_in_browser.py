"""The lab in a real browser: from the form over progress to charts, comparison and a draft."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.lab import tasks
from controlplane.lab.child.order import Piece, Progress
from controlplane.lab.models import Simulation
from controlplane.lab.services import claims, simulations
from controlplane.policies.models import Policy
from controlplane.telemetry.hub import Hub
from tests.dashboards.test_accessibility import AXE, RUN
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SETTINGS: dict[str, Any] = {
    "trace": "chatbot",
    "policies": ["multiplicative", "vllm", "linear:L=0.55", "least_request"],
    "fleet": "a100-80g:4",
    "requests": 300,
    "rate_scales": [0.5, 1.0, 2.0],
}
CHARTS = 7


async def run_next() -> None:
    """Be the task worker: run the next simulation."""

    def work() -> None:
        tasks.work()
        connections.close_all()

    await asyncio.to_thread(work)


async def simulated(**changes: Any) -> Simulation:
    """Return a simulation that is done."""
    made = await sync_to_async(simulations.create_simulation)(actor=SYSTEM, settings=SETTINGS | changes)
    await run_next()
    return made


async def drawn(watched: WatchedPage, charts: int) -> None:
    """Wait until so many charts are drawn."""
    await watched.until(f"() => document.querySelectorAll('[data-figure] .main-svg').length >= {charts}")


async def test_from_the_form_to_a_draft(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/lab/")
    await expect(watched.page.locator("#detail").first).to_contain_text("What would another policy do?")
    await page.fill("#id_requests", "150")
    await page.fill("#id_fleet", "abacus:2")
    await page.click("#simulation-form button[type=submit]")
    await expect(watched.page.locator(".field .error").first).to_contain_text("no hardware profile 'abacus'")
    await page.fill("#id_fleet", "a100-80g:2")
    await page.fill("#id_more", "multiplicative:a=2")
    await page.click("#simulation-form button[type=submit]")
    await page.wait_for_selector("#lab-status:has-text('queued')")
    claimed = await sync_to_async(claims.claim_next)(1)
    assert claimed is not None
    pieces = (Piece("multiplicative", 1000), Piece("vllm", 250))
    await sync_to_async(claims.still_mine)(claimed, Progress(phase="running policies", pieces=pieces))
    await page.wait_for_selector("#lab-status:has-text('running policies')")
    await watched.until("() => document.querySelector('#lab-status progress')?.value === 0.625")
    await watched.keep_screenshot("lab-running")
    await Simulation.objects.filter(pk=claimed.pk).aupdate(state="queued", claim=None)
    await run_next()
    await page.wait_for_selector("#result-table")
    await drawn(watched, CHARTS - 1)
    await expect(page.locator("#result-table tbody tr")).to_have_count(5)
    await page.select_option("#draft-policy", "multiplicative:a=2")
    await page.fill("#draft-name", "default")
    await page.click("text=Make it a draft")
    await page.wait_for_url("**/policies/default/")
    assert (await Policy.objects.aget(name="default")).draft == {"a": 2.0}
    assert watched.complaints == [
        "error: Failed to load resource: the server responded with a status of 400 (Bad Request)"
    ]


async def test_what_is_looked_at_stands_in_the_address(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    one, other = await simulated(), await simulated(fleet="a100-80g:8")
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/lab/{one.pk}/")
    await drawn(watched, CHARTS)
    rates = [await watched.text("#result-table tbody td:nth-child(2)")]
    await page.select_option("#view-rate", "2.0")
    await watched.until(
        "before => document.querySelector('#result-table tbody td:nth-child(2)').textContent !== before", rates[0]
    )
    assert "rate=2.0" in page.url
    await page.select_option("#view-policy", "vllm")
    await watched.until("() => location.search.includes('policy=vllm')")
    await page.select_option("#view-with", str(other.pk))
    await page.wait_for_selector("#result-table td:has-text('B: linear:L=0.55')")
    await drawn(watched, CHARTS)
    await expect(page.locator("#result-table tbody tr")).to_have_count(8)
    await watched.keep_screenshot("lab-compared")
    await page.reload()
    await page.wait_for_selector("#result-table td:has-text('B: linear:L=0.55')")
    await expect(page.locator("#view-rate")).to_have_value("2.0")
    assert watched.complaints == []


async def test_downloads_stand_alone(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], tmp_path: Path
) -> None:
    one = await simulated(rate_scales=[1.0])
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/lab/{one.pk}/")
    async with page.expect_download() as figures:
        await page.click("text=Figures (JSON)")
    assert len(json.loads(Path(await (await figures.value).path()).read_text())["runs"]) == 4
    async with page.expect_download() as report:
        await page.click("text=Report (HTML)")
    kept = tmp_path / "report.html"
    await (await report.value).save_as(kept)
    await page.goto(kept.as_uri())
    await page.wait_for_selector(".chart .main-svg")
    assert watched.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 1440), ("dark", 360), ("light", 360)])
async def test_it_fits_every_window(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    one = await simulated()
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    await watched.page.goto(f"{web.url}/lab/")
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"lab-form-{scheme}-{width}")
    await watched.page.evaluate(AXE.read_text())
    assert await watched.page.evaluate(RUN) == []
    await watched.page.goto(f"{web.url}/lab/{one.pk}/")
    await drawn(watched, CHARTS)
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"lab-{scheme}-{width}")
    await watched.page.evaluate(AXE.read_text())
    assert await watched.page.evaluate(RUN) == []
    assert watched.complaints == []
