"""A browser that stalls costs the server nothing, and one that comes back is current at once, whatever it waits for."""

import asyncio
import base64
import os
import socket
from typing import Any

import pytest
from playwright.async_api import Browser

from controlplane.telemetry import feed
from controlplane.telemetry.feed import MIN_INTERVAL_S
from controlplane.telemetry.hub import Hub
from tests.dashboards.feeding import feeding
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])]

RATE_IS_NOT = "(old) => document.querySelector('[data-stat=rate] .stat-number').textContent !== old"
LIVE = "() => document.querySelector('#badge').dataset.state === 'live'"
FRAMES = 60
MISSED = 12


async def stalled_reader(web: WebProcess, cookie: dict[str, Any]) -> socket.socket:
    """Shake hands for frames, and never read one; the kernel may hold little for it."""
    host, _, port = web.url.removeprefix("http://").partition(":")
    loop, stalled = asyncio.get_running_loop(), socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.setblocking(False)
    await loop.sock_connect(stalled, (host, int(port)))
    lines = [
        "GET /ws/scores/ HTTP/1.1",
        f"Host: {host}:{port}",
        f"Origin: {web.url}",
        f"Cookie: {cookie['name']}={cookie['value']}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
    ]
    await loop.sock_sendall(stalled, ("\r\n".join(lines) + "\r\n\r\n").encode())
    assert await loop.sock_recv(stalled, 12) == b"HTTP/1.1 101"
    return stalled


async def test_a_stalled_browser_is_owed_one_frame(
    web: WebProcess, fresh_hub: Hub, session_cookie: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MIN_INTERVAL_S", 0.01)  # how soon one frame follows another changes nothing here
    worker = FakeWorker(64, 300.0)
    for _ in range(240):
        fresh_hub.accept(worker.step())
    stalled = await stalled_reader(web, session_cookie)
    while fresh_hub.feed.subscribers == 0:
        await asyncio.sleep(0)
    with fresh_hub.feed.subscribe() as awake:
        frame_bytes = len(await awake.take())
        for _ in range(FRAMES):
            fresh_hub.accept(worker.step())
            await asyncio.wait_for(awake.take(), PATIENCE_S)
    assert frame_bytes * FRAMES > 4 * 2**20
    assert 0 < web.buffered_bytes() < 2 * frame_bytes
    stalled.close()


async def test_a_browser_that_was_offline_is_current_when_the_network_is_back_without_waiting_for_its_next_try(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    """Its timers stand still from before the connection is lost: nothing happens there because some time is over."""
    worker = FakeWorker(8, 40.0)
    watched = await open_page(chromium, session_cookie)
    await watched.page.clock.install()
    await watched.page.goto(web.url)
    async with feeding(fresh_hub, worker):
        await watched.until(LIVE)
        await watched.page.clock.pause_at(await watched.page.evaluate("Date.now() + 100"))
        await web.stop()
        await watched.until("() => document.querySelector('#badge').dataset.state === 'reconnecting'")
        await watched.context.set_offline(True)
        await web.start()
        worker.rate = 400.0
        old = await watched.text("[data-stat=rate] .stat-number")
        await watched.context.set_offline(False)
        await watched.until(LIVE)
        await watched.page.clock.resume()  # what came is drawn when a picture is due
        await watched.until(RATE_IS_NOT, old)


async def test_a_page_that_was_frozen_is_current_again_by_itself(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    worker = FakeWorker(8, 40.0)
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(web.url)
    async with feeding(fresh_hub, worker):
        await watched.until(LIVE)
        devtools = await watched.context.new_cdp_session(watched.page)
        await devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
        missed = worker.seq + MISSED
        while worker.seq < missed:
            await asyncio.sleep(MIN_INTERVAL_S)
        await devtools.send("Page.setWebLifecycleState", {"state": "active"})
        now_s = fresh_hub.frame().time_unix_s
        await watched.until("(now) => Number(document.querySelector('#live').dataset.frameTime) >= now", now_s)
    assert watched.complaints == []
