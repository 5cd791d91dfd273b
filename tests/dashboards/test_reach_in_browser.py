"""Parts of a page that cannot be had: the page says so, keeps what it showed, and says when it is over."""

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from playwright.async_api import Browser, expect

from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


async def opened(web: WebProcess, chromium: Browser, cookie: dict[str, Any], path: str) -> WatchedPage:
    watched = await open_page(chromium, cookie)
    await watched.page.goto(web.url + path)
    return watched


async def test_a_server_that_is_away_is_told_and_so_is_its_return(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await opened(web, chromium, session_cookie, "/workloads/")
    told = watched.page.locator("#reach")
    await expect(told).to_be_hidden()
    await web.stop()
    await expect(told).to_contain_text("The server does not answer. What you see is from")
    await expect(watched.page.locator("#workloads tbody tr")).to_have_count(1)
    await watched.keep_screenshot("server-away")
    await web.start()
    await expect(told).to_be_hidden()


async def test_a_part_never_shows_the_sign_in_page(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await opened(web, chromium, session_cookie, "/workloads/")
    await Session.objects.all().adelete()
    told = watched.page.locator("#reach")
    await expect(told).to_contain_text("Your session has ended")
    await expect(told.locator("a")).to_have_attribute("href", "/login/?next=/workloads/")
    await expect(watched.page.locator("#workloads tbody tr")).to_have_count(1)


async def test_what_was_asked_for_by_a_click_is_said_to_be_gone(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await opened(web, chromium, session_cookie, "/audit/")
    page = watched.page
    await page.route("**/audit/*/", lambda route: route.fulfill(status=404))
    await page.evaluate(
        """() => {
          const link = Object.assign(document.createElement("a"), { href: "/audit/77/", textContent: "gone" });
          link.setAttribute("hx-get", "/audit/77/");
          document.getElementById("content").append(link);
          htmx.process(link);
        }"""
    )
    await page.click("text=gone")
    await expect(page.locator("#reach")).to_contain_text("not there any more")
