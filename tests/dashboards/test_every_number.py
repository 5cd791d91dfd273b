"""Every number on every page changes when its source changes, and no number is there that the table does not know."""

import asyncio
import re
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from playwright.async_api import Browser

from controlplane.alerts.feed import alerts_feed
from controlplane.telemetry.hub import Hub
from tests.dashboards.walk.pages import PAGES, Change, Walked
from tests.dashboards.walk.texts import numbers_in, text_of, uncovered
from tests.dashboards.walk.world import World
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases="__all__")]
ATTEMPTS, ATTEMPTED_S = 3, 5.0
"""Some numbers are of the last second or two, which a fast machine is through with before they are over."""
EVERYWHERE = (".rail-count",)
"""Numbers that every page has."""


@pytest.fixture(autouse=True)
def fresh_feed() -> None:
    """A feed of alerts that belongs to this test's event loop."""
    alerts_feed.cache_clear()


@pytest.mark.parametrize("walked", PAGES, ids=lambda walked: walked.path)
async def test_every_number_changes_with_its_source(
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    walked: Walked,
) -> None:
    world = await sync_to_async(World)(fresh_hub, monkeypatch, tmp_path)
    world.hear()
    watched = await open_page(chromium, session_cookie)
    simulation = await asyncio.to_thread(_simulated, world) if "{simulation}" in walked.path else ""
    url = web.url + walked.path.format(alert=world.alert.pk, simulation=simulation)
    await look(watched, url, walked)
    still = [
        f"{source}: {what}"
        for source, change, selectors in walked.numbers
        for what in await unmoved(watched, url, walked, world, change, selectors)
    ]
    assert still == []
    covered = [*EVERYWHERE, *(selector for _, _, selectors in walked.numbers for selector in selectors)]
    unknown = [
        text
        for text in await uncovered(watched.page, covered)
        if not any(re.fullmatch(pattern, text) for pattern in walked.literal)
    ]
    assert unknown == [], "numbers that no line of the table covers"


async def unmoved(
    watched: WatchedPage, url: str, walked: Walked, world: World, change: Change, selectors: Sequence[str]
) -> list[str]:
    """Change a source, again and again if need be, and return what did not move."""
    until_s = time.monotonic() + ATTEMPTED_S
    before = {selector: await text_of(watched.page, selector) for selector in selectors}
    still: list[str] = []
    for attempt in count(1):
        await sync_to_async(change)(world)
        world.hear()
        await look(watched, url, walked)
        after = {selector: await text_of(watched.page, selector) for selector in selectors}
        still = [
            f"{selector}: {before[selector][:80]!r} -> {text[:80]!r}"
            for selector, text in after.items()
            if not numbers_in(text) or numbers_in(text) == numbers_in(before[selector])
        ]
        if not still or (attempt >= ATTEMPTS and time.monotonic() > until_s):
            break
    return still


def _simulated(world: World) -> str:
    made = world.simulate()
    connections.close_all()  # this thread ends
    return made


async def look(watched: WatchedPage, url: str, walked: Walked) -> None:
    await watched.page.goto(url)
    await watched.page.wait_for_selector(walked.settled)
    await watched.until("() => !document.querySelector('.htmx-request')")
    if walked.path == "/":
        await watched.until("() => document.querySelector('#instances tbody [data-cell=bs]')?.textContent")


async def test_a_hard_coded_number_is_found(chromium: Browser) -> None:
    watched = await open_page(chromium, None)
    await watched.page.set_content(
        "<p class=known>12 requests</p><p>gpu-07 at p95</p><p>About 3,000 of them</p><p hidden>7</p><kbd>8</kbd>"
    )
    assert await uncovered(watched.page, [".known"]) == ["About 3,000 of them"]
