"""Where labels of dots go: within the picture, also where there is no free place."""

from typing import Any

import pytest
from playwright.async_api import Browser

from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PLACED = """async (url) => {
  const { placeLabels } = await import(url);
  const bounds = { left: 40, right: 300, top: 2, bottom: 200 };
  const at = (n) => ({ x: 200 + (n % 10) * 11, y: 20 + Math.floor(n / 10) * 30 });
  const dot = { radius: 9, width: 60, mustShow: false, place: null };
  const crowd = Array.from({ length: 60 }, (_, n) => ({ ...dot, ...at(n) }));
  const kept = { dx: 15, dy: 0, align: "left", leader: false };
  const chosen = { ...dot, x: 290, y: 100, mustShow: true, place: kept };
  placeLabels([chosen, ...crowd], bounds);
  const { dx, align } = chosen.place;
  const left = chosen.x + dx - (align === "left" ? 0 : align === "right" ? chosen.width : chosen.width / 2);
  return [left, left + chosen.width];
}"""


async def test_a_label_that_must_be_seen_is_never_cut(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(f"{web.url}/audit/")
    shell = await watched.page.locator("script[src*=shell]").get_attribute("src") or ""
    left, right = await watched.page.evaluate(PLACED, shell.replace("shell", "live/labels"))
    assert 40 <= left < right <= 300
