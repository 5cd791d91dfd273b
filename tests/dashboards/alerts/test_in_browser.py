"""Alerts in a real browser: they appear, are acknowledged and silenced, and nothing complains."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.alerts.finding import Severity
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Channel, ChannelKind, Silence
from controlplane.alerts.services import handling
from controlplane.alerts.services.channels import ChannelSpec, create_channel, try_channel
from controlplane.alerts.services.outbox import Attempt, claim, delivered, failed
from tests.dashboards.alerts.conftest import fire
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
BADGE_SAYS = "(count) => document.querySelector('.rail-count:not([hidden]) [data-count]')?.textContent === count"
LISTED = "(count) => document.querySelectorAll('#alerts-body tbody tr').length === count"


@pytest_asyncio.fixture(loop_scope="session")
async def alerts_page(web: WebProcess, chromium: Browser, session_cookie: dict[str, Any]) -> AsyncIterator[WatchedPage]:
    """The alerts page, connected, with one alert."""
    await sync_to_async(fire)("gpu-01")
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(f"{web.url}/alerts/")
    await watched.until(BADGE_SAYS, "1")
    yield watched
    assert watched.complaints == []


async def test_a_new_alert_appears_by_itself_in_list_rail_and_title(alerts_page: WatchedPage) -> None:
    await alerts_page.until(LISTED, 1)
    assert (await alerts_page.page.title()).startswith("(1) Alerts")
    await sync_to_async(fire)("gpu-02", "hotspot_class", Severity.CRITICAL)
    await alerts_page.until(BADGE_SAYS, "2")
    await alerts_page.until(LISTED, 2)
    assert (await alerts_page.page.title()).startswith("(2) Alerts")


async def test_an_alert_is_opened_acknowledged_commented_on_and_resolves_by_itself(alerts_page: WatchedPage) -> None:
    page = alerts_page.page
    await page.click(".row-link")
    await page.select_option("#duration", "3600")
    await page.click("#detail button:has-text('Acknowledge')")
    await page.wait_for_selector("#alert-state .alert-state[data-state=acknowledged]")
    await alerts_page.until("() => document.querySelector('.rail-count').hidden")
    await page.fill("#comment", "fans are being changed")
    await page.click("button:has-text('Say it')")
    await page.wait_for_selector("#timeline :text('fans are being changed')")
    alert = await Alert.objects.aget()
    assert (alert.life, alert.acknowledged_by) == (AlertState.ACKNOWLEDGED, "ada")
    await sync_to_async(handling.resolve)(actor=SYSTEM, alert_id=alert.pk)
    await page.wait_for_selector("#alert-state .alert-state[data-state=resolved]")
    assert not (await page.title()).startswith("(")


async def test_an_alert_is_silenced_after_a_preview(alerts_page: WatchedPage) -> None:
    page = alerts_page.page
    await page.click(".row-link")
    await page.click("a:has-text('Silence…')")
    await page.wait_for_selector("#silence-preview :text('1 open alert')")
    await page.fill("#id_matchers", 'instance="gpu-99"')
    await page.wait_for_selector("#silence-preview :text('No open alert')")
    await page.fill("#id_matchers", "instance=~gpu-.*")
    await page.wait_for_selector("#silence-preview :text('1 open alert')")
    await page.fill("#id_comment", "fans are being changed")
    await page.click("#silence-form button:has-text('Silence')")
    await page.wait_for_selector("text=The silence holds from now on.")
    await alerts_page.until("() => document.querySelector('.rail-count').hidden")
    assert (await Silence.objects.aget()).created_by == "ada"


async def test_conditions_are_suggested_from_what_open_alerts_have(alerts_page: WatchedPage) -> None:
    page = alerts_page.page
    await sync_to_async(fire)("gpu-02", "hotspot_class")
    await page.goto(page.url.replace("/alerts/", "/alerts/silences/"))
    label, value = page.get_by_label("Label"), page.get_by_label("Value")
    suggested = "(input) => [...input.list.options].map((option) => option.value)"
    names = await label.evaluate(suggested)
    assert names == sorted(names)
    assert {"instance", "kind", "severity"} <= set(names)
    await label.fill("instance")
    assert await value.evaluate(suggested) == ["gpu-01", "gpu-02"]
    await value.fill("gpu-02")
    await page.click(".condition button")
    await page.wait_for_selector("#silence-preview :text('1 open alert')")
    await label.fill("severity")
    await page.get_by_label("How it is compared").select_option("!=")
    await value.fill("info")
    await value.press("Enter")
    assert await page.input_value("#id_matchers") == 'instance="gpu-02"\nseverity!="info"'
    await label.fill("unknown")
    assert await value.evaluate("(input) => input.list") is None
    await value.press("Enter")
    assert await page.input_value("#id_matchers") == 'instance="gpu-02"\nseverity!="info"\nunknown!=""'


async def test_chosen_alerts_are_handled_together_and_stay_chosen_meanwhile(alerts_page: WatchedPage) -> None:
    page = alerts_page.page
    await sync_to_async(fire)("gpu-02")
    await alerts_page.until(LISTED, 2)
    await page.check("[data-check-all]")
    await sync_to_async(fire)("gpu-03")
    await alerts_page.until(BADGE_SAYS, "3")
    await expect(page.locator("input[name=alert]:checked")).to_have_count(2)
    await page.click(".bulk button:has-text('Acknowledge')")
    await alerts_page.until(BADGE_SAYS, "1")
    assert await Alert.objects.filter(state="acknowledged").acount() == 2


async def test_the_badge_falls_back_to_polling(
    web: WebProcess, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.add_init_script(
        "window.WebSocket = class extends EventTarget { constructor() { super(); "
        "setTimeout(() => this.dispatchEvent(new CloseEvent('close', { code: 1006 }))); } close() {} };"
    )
    await watched.page.goto(f"{web.url}/alerts/")
    await sync_to_async(fire)()
    await watched.until(BADGE_SAYS, "1")
    await watched.until(LISTED, 1)
    assert watched.complaints == []


def make_channel() -> Channel:
    """A webhook with a delivery log."""
    spec = ChannelSpec(name="on-call", kind=ChannelKind.WEBHOOK, settings={"url": "https://hooks.example.com/x"})
    channel = create_channel(actor=SYSTEM, spec=spec)
    for outcome in ("fail", "deliver"):
        try_channel(actor=SYSTEM, channel_id=channel.pk)
        for row in claim(10):
            if outcome == "fail":
                failed(row, Attempt(10.0, None, "No complete answer within 10 s."))
            else:
                delivered(row, Attempt(0.12, 200, "answered 200"))
    return channel


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [360, 1440])
async def test_they_fit_every_window(
    web: WebProcess, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    hot = await sync_to_async(fire)(
        "gpu-07",
        "hotspot_class",
        summary="Prefix class 3f2a is 41% of all requests, and 1 of 8 instances hold its prefix",
    )
    await sync_to_async(fire)(
        "gpu-03", "instance_unreachable", Severity.CRITICAL, "gpu-03 is unreachable: 3 probes failed"
    )
    acknowledged = await sync_to_async(fire)("gpu-05")
    await sync_to_async(handling.acknowledge)(actor=SYSTEM, alert_id=acknowledged.pk, comment="new fans come at noon")
    channel = await sync_to_async(make_channel)()
    watched = await open_page(
        chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    for name, path in {
        "alerts": "/alerts/",
        "alert": f"/alerts/{hot.pk}/",
        "alerts-empty": "/alerts/?severity=info",
        "alerts-kinds": "/alerts/?state=",
        "silences": f"/alerts/silences/?alert={hot.pk}",
        "channels": f"/alerts/channels/{channel.pk}/",
        "channel-new": "/alerts/channels/+new/email/",
    }.items():
        await watched.page.goto(f"{web.url}{path}")
        await watched.until(BADGE_SAYS, "2")
        assert await watched.overflow_px() == 0, path
        await watched.keep_screenshot(f"{name}-{scheme}-{width}")
    assert watched.complaints == []
