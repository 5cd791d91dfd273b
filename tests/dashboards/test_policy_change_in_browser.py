"""A policy changed in a real browser moves the next request of a real router worker, and going back moves it back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone
from playwright.async_api import Browser, Page, expect

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tokens import create_token
from controlplane.bridge.publisher import note_change
from controlplane.fleet.models import Instance
from controlplane.lab import tasks
from controlplane.telemetry.hub import Hub
from router.core.instance import InstanceState
from tests.controlplane.lab.recorded import record_own_traffic
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess
from tests.e2e.processes import eventually, is_ready, running
from tests.patience import PATIENCE_S
from tests.ports import free_ports

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases="__all__")]
MODEL = "sim"


class Traffic:
    """A client of the router worker."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def ask(self, number: int) -> httpx.Headers:
        """Send one request that is like no other, and return what the answer's head says."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": f"{number}" * 40}], "max_tokens": 1}
        headers = {"x-request-id": f"request-{number}"}
        answer = await self.client.post("/v1/chat/completions", json=body, headers=headers)
        answer.raise_for_status()
        return answer.headers

    @asynccontextmanager
    async def long_stream(self) -> AsyncIterator[str]:
        """Keep one instance busy; yield its name."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "long"}], "max_tokens": 50_000, "stream": True}
        async with self.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield answer.headers["x-pointsman-instance"]


@pytest.fixture
def token_file(tmp_path: Path, transactional_db: None) -> Path:
    """A file with a token for the worker."""
    _, text = create_token(actor=SYSTEM, name="worker", scopes=[Scope.ROUTER])
    path = tmp_path / "token"
    path.write_text(text)
    return path


@asynccontextmanager
async def routing(web: WebProcess, folder: Path, token_file: Path, recordings: Path) -> AsyncIterator[Traffic]:
    """Run two engines and a router worker that records; yield a client of it."""
    first = free_ports(3)
    router = f"http://127.0.0.1:{first + 2}"
    for place in range(2):
        now = timezone.now()
        await Instance.objects.acreate(
            name=f"gpu-{place}",
            url=f"http://127.0.0.1:{first + place}",
            state=InstanceState.READY,
            state_since=now,
            probe_due_at=now,
        )
    await sync_to_async(note_change)()
    engines = ["-m", "router.cli", "engine", "--port", str(first), "--count", "2", "--model", MODEL]
    worker = ["-m", "router.cli", "worker", "--listen", f"127.0.0.1:{first + 2}", "--control", web.url]
    worker += ["--token-file", str(token_file), "--record-last", str(recordings)]
    with ExitStack() as processes:
        processes.enter_context(running(engines, folder / "engines.log"))
        processes.enter_context(running(worker, folder / "worker.log"))
        await asyncio.to_thread(eventually, is_ready(f"http://127.0.0.1:{first + 1}/health"), "engines are ready")
        await asyncio.to_thread(eventually, is_ready(f"{router}/readyz"), "the worker is ready")
        async with httpx.AsyncClient(base_url=router, timeout=PATIENCE_S) as client:
            yield Traffic(client)


async def until_every_worker_runs_it(page: Page) -> None:
    """Look at the page again until it says that what was published is in force."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await page.reload()
            if await page.locator(".state:has-text('on all workers')").count():
                return


async def run_next() -> None:
    """Be the task worker."""

    def work() -> None:
        tasks.work()
        connections.close_all()

    await asyncio.to_thread(work)


async def play_recorded_requests(watched: WatchedPage) -> None:
    page = watched.page
    await page.select_option("#replay-minutes", "5")
    await page.click("text=Play them")
    await page.wait_for_selector("#replay:has-text('queued')")
    await run_next()
    await page.wait_for_selector("#replay strong:has-text(' of ')")
    await expect(watched.page.locator("#replay").first).to_contain_text("gpu-0")
    await expect(watched.page.locator("#replay").first).to_contain_text("TTFT, mean")


async def publish(page: Page, message: str) -> None:
    await page.click("text=Publish…")
    await page.fill("#message", message)
    await page.click("#publish button[value=publish]")
    await page.wait_for_selector(".toast-success")


async def test_edit_preview_publish_and_roll_back(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    tmp_path: Path,
    token_file: Path,
    settings: Any,
) -> None:
    settings.DATA_DIR = tmp_path / "data"
    recordings = settings.DATA_DIR / "recordings" / "last"
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    async with routing(web, tmp_path, token_file, recordings) as traffic, traffic.long_stream() as busy:
        idle = {"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[busy]
        for number in range(1, 31):
            before = await traffic.ask(number)
            assert before["x-pointsman-instance"] == idle, "the product avoids who is busy"
        assert before["x-pointsman-policy"] == "default@1"

        await page.goto(f"{web.url}/policies/default/")
        await page.select_option("#field-scorer", "round_robin")
        assert json.loads(await page.input_value("#policy-content")) == {"scorer": "round_robin"}
        await page.wait_for_selector("#preview .diff:has-text('scorer')")
        await page.wait_for_selector("#preview .preview-part:last-child strong")
        assert not (await watched.text("#preview .preview-part:last-child strong")).startswith("0 of")
        await asyncio.to_thread(eventually, lambda: _recorded(recordings), "what was served is recorded")
        await play_recorded_requests(watched)
        await watched.keep_screenshot("policy-replay")

        await publish(page, "Take turns")
        await until_every_worker_runs_it(page)
        changed = await traffic.ask(101)
        assert changed["x-pointsman-policy"] == "default@2"
        assert changed["x-pointsman-instance"] == busy, "chosen longest ago"

        await page.fill("#back-1", "Back to the product")
        await page.click("text=Go back to @1")
        await page.wait_for_selector(".toast-success:has-text('it restores revision 1')")
        await until_every_worker_runs_it(page)
        again = await traffic.ask(102)
        assert again["x-pointsman-policy"] == "default@3"
        assert again["x-pointsman-instance"] == idle

        for number, headers in ((101, changed), (102, again), (7, None)):
            await page.goto(f"{web.url}/decisions/")
            await page.fill("#q", f"request-{number}")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("#detail h2:has-text('Why gpu-')")
            await expect(watched.page.locator("#detail dl").first).to_contain_text(f"request-{number}")
            if headers is not None:
                await expect(watched.page.locator("#detail h2").first).to_contain_text(headers["x-pointsman-instance"])
                await expect(watched.page.locator("#detail dl").first).to_contain_text(headers["x-pointsman-policy"])
        await page.fill("#q", "request-never-sent")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#detail:has-text('was asked and does not remember')")
    assert watched.complaints == []


def _recorded(folder: Path) -> bool:
    return any(path.stat().st_size for path in folder.glob("*.jsonl"))


async def test_a_preview_can_be_cancelled_and_says_what_is_missing(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/policies/default/")
    await expect(watched.page.locator(".replay").first).to_contain_text("pointsman up --record")
    await sync_to_async(record_own_traffic)()
    await page.reload()
    await page.click("text=Play them")
    await page.wait_for_selector("#replay:has-text('No instance takes requests')")
    now = timezone.now()
    await Instance.objects.acreate(
        name="gpu-1", url="http://10.0.0.1:8000", state=InstanceState.READY, state_since=now, probe_due_at=now
    )
    await page.click("text=Play them")
    await page.wait_for_selector("#replay:has-text('next in turn')")
    await page.click("#replay >> text=Cancel")
    await page.wait_for_selector("#replay:has-text('Cancelled.')")
    assert watched.complaints == []
