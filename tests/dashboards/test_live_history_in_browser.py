"""Filters, range, comparison and files of the live page in a real browser, also where sockets are blocked."""

import csv
import io
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, Download

from controlplane.accounts.actor import SYSTEM
from controlplane.policies.services import revisions
from controlplane.telemetry import rollups
from controlplane.telemetry.frame import Frame
from controlplane.telemetry.hub import Hub
from controlplane.telemetry.rollup import WorkerRollup, bucket_of_time
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])]

SHOWS_WORKLOAD = "(name) => document.querySelector('#scope-note').textContent.includes(`workload ${name}`)"

HAS_TEXT = "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)"
DRAWN = "#distribution[aria-label*='P95']"
NO_SOCKETS = (
    "window.WebSocket = class extends EventTarget { constructor() { super(); "
    "setTimeout(() => this.dispatchEvent(new CloseEvent('close', { code: 1006 }))); } close() {} };"
)


@pytest.fixture
def workers(fresh_hub: Hub) -> list[FakeWorker]:
    """Two workloads, four instances of two models; half a minute heard, a quarter of an hour kept."""
    found = [FakeWorker(4, rate, name=name, seed=at, workload=name) for at, (name, rate) in enumerate(TRAFFIC.items())]
    for worker in found:
        for instance in worker.instances[2:]:
            instance.models = ("other",)
    for _ in range(120):
        for worker in found:
            fresh_hub.accept(worker.step())
    now = bucket_of_time(time.time())
    for bucket in range(now - 900, now, 10):
        made = [WorkerRollup(worker=worker.name, bucket=bucket) for worker in found]
        for rollup, worker in zip(made, found, strict=True):
            for _ in range(4):
                rollup.add(worker.step())
        rollups.write(made)
    return found


TRAFFIC = {"batch": 10.0, "chat": 40.0}


async def open_live(web: WebProcess, chromium: Browser, cookie: dict[str, Any], query: str = "") -> WatchedPage:
    watched = await open_page(chromium, cookie)
    await watched.page.goto(f"{web.url}/{query}")
    await watched.page.wait_for_selector("#instances tbody tr")
    return watched


async def text_of(download: Download) -> str:
    return Path(await download.path()).read_text()


async def test_filters_choose_what_is_counted_and_stay_in_the_address(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie)
    await live.page.select_option("#workload", "batch")
    await live.until(SHOWS_WORKLOAD, "batch")
    await live.until("() => document.querySelector('#decision-link').href.includes('batch-')")
    await live.page.select_option("#model", "other")
    await live.until("() => document.querySelectorAll('#instances tbody tr').length === 2")
    assert parse_qs(urlsplit(live.page.url).query) == {"workload": ["batch"], "model": ["other"]}
    await live.page.goto(live.page.url)
    await live.until(SHOWS_WORKLOAD, "batch")
    assert await live.page.input_value("#model") == "other"
    assert await live.page.locator("#instances tbody tr").count() == 2
    await live.page.select_option("#model", "")
    await live.page.select_option("#workload", "")
    await live.until("() => document.querySelectorAll('#instances tbody tr').length === 4")
    await live.until("() => document.querySelector('#scope-note').hidden")
    assert live.complaints == []


def moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


async def test_a_time_of_the_past_is_chosen_and_stays_in_the_address(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie)
    begin, end = moment(time.time() - 600), moment(time.time() - 300)
    await live.page.click("#range-button")
    await live.page.fill("#range-dialog [name=from]", end[:-1])
    await live.page.fill("#range-dialog [name=to]", begin[:-1])
    await live.page.click("#range-dialog [type=submit]")
    assert "before it ends" in await live.text("#range-dialog .form-error")
    await live.page.fill("#range-dialog [name=from]", begin[:-1])
    await live.page.fill("#range-dialog [name=to]", end[:-1])
    await live.page.click("#range-dialog [type=submit]")
    shown = f"{begin[11:16]} to {end[11:16]} UTC"
    await live.until(HAS_TEXT, ["#history-span", shown])
    assert parse_qs(urlsplit(live.page.url).query) == {"from": [begin], "to": [end]}
    await live.page.goto(live.page.url)
    await live.until(HAS_TEXT, ["#history-span", shown])
    await live.until(HAS_TEXT, ["#spread-span", shown])
    assert await live.page.get_attribute("#range-button", "aria-pressed") == "true"
    assert await live.page.get_attribute("[data-set='range=1']", "aria-pressed") == "false"
    assert await live.page.is_hidden("#range-note")
    await live.page.click("[data-set='range=15']")
    await live.until(HAS_TEXT, ["#spread-span", "last 15 min"])
    assert parse_qs(urlsplit(live.page.url).query) == {"range": ["15"]}
    assert live.complaints == []


async def test_a_time_that_is_not_kept_or_makes_no_sense_says_so(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie, "?from=2026-01-01T10:00Z&to=2026-01-01T11:00Z")
    await live.until(HAS_TEXT, ["#range-note", "Nothing is kept of this time. The past is kept for 2 hours"])
    await live.keep_screenshot("live-nothing-kept")
    await live.page.goto(f"{web.url}/?from={moment(time.time() - 3_600)}&to={moment(time.time())}")
    await live.until(HAS_TEXT, ["#range-note", "The beginning of this time is not kept"])
    await live.page.goto(f"{web.url}/?from=2199-01-01T10:00Z&to=2199-01-01T11:00Z")
    await live.until(HAS_TEXT, ["#range-note", "not begun yet"])
    await live.page.goto(f"{web.url}/?from=yesterday&to=today")
    await live.until(HAS_TEXT, ["#range-note", "such as 2026-11-30T10:00Z"])
    assert await live.text("#spread-span") == "last 60 s"
    assert live.complaints == []


async def test_numbers_of_a_workload_are_those_of_its_frame(
    web: WebProcess, workers: list[FakeWorker], fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie, "?workload=chat")
    async with live.page.expect_download() as started:
        await live.page.click("[data-export=frame]")
    frame = msgspec.json.decode(await text_of(await started.value), type=Frame)
    whole = fresh_hub.frame()
    assert frame.selection.workload == "chat"
    assert 0 < frame.headline.requests < whole.headline.requests
    assert frame.headline.requests == next(row.requests for row in whole.workloads if row.name == "chat")
    assert live.complaints == []


async def test_two_instances_are_compared_by_click_key_and_address(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie, "?range=15")
    await live.page.click("tr[data-name='gpu-01']")
    await live.page.click("tr[data-name='gpu-03']", modifiers=["Shift"])
    await live.page.wait_for_selector("#compared tbody tr")
    heads = await live.page.locator("#compared thead th").all_text_contents()
    assert [head[:6] for head in heads[1:3]] == ["gpu-01", "gpu-03"]
    assert await live.page.locator("tr[aria-selected=true]").count() == 2
    await live.until(HAS_TEXT, ["#apart-legend", "gpu-03"])
    assert {"instance=gpu-01", "versus=gpu-03", "range=15"} <= set(urlsplit(live.page.url).query.split("&"))
    await live.keep_screenshot("live-compare-instances")
    await live.page.goto(live.page.url)
    await live.until(HAS_TEXT, ["#compared thead", "gpu-03"])
    await live.page.keyboard.press("c")
    await live.page.wait_for_selector("#compared", state="hidden")
    await live.page.keyboard.press("c")
    await live.until(HAS_TEXT, ["#compared thead", "gpu-00"])
    await live.page.keyboard.press("Escape")
    assert urlsplit(live.page.url).query == "range=15"
    assert live.complaints == []


async def test_two_times_are_compared_by_pointing_at_one(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie, "?range=15")
    await live.until("() => document.querySelector('#history-span').textContent.includes('UTC')")
    await live.page.click("[data-course=ttft] canvas", position={"x": 160, "y": 60})
    await live.page.wait_for_selector("#compared tbody tr")
    then = int(parse_qs(urlsplit(live.page.url).query)["then"][0])
    assert time.time() - 900 < then < time.time()
    heads = await live.page.locator("#compared thead .apart-time").all_text_contents()
    assert len(heads) == 2
    assert heads[0] < heads[1]
    assert await live.page.input_value("#then") == str(then)
    await live.keep_screenshot("live-compare-times")
    await live.page.select_option("#then", "")
    await live.page.wait_for_selector("#compared", state="hidden")
    assert live.complaints == []


async def test_what_happened_is_marked_and_the_alert_has_its_line(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    await sync_to_async(revisions.publish)(actor=SYSTEM, name="default", message="why", expected=1, content={"b": 0.5})
    live = await open_live(web, chromium, session_cookie, "?range=15")
    await live.until(HAS_TEXT, ["#events", "policy default published"])
    for view in ("histogram", "time"):
        await live.page.click(f"[data-set='spread={view}']")
        await live.page.wait_for_selector(DRAWN)
        assert "alert above" in (await live.page.get_attribute("#distribution", "aria-label") or "")
    await live.until(HAS_TEXT, ["#spread-caption", "4 × the usual P95"])
    await live.until("() => ['live', 'stale'].includes(document.querySelector('#badge').dataset.state)")
    await live.page.click("#events a")
    await live.page.wait_for_url("**/policies/default/")
    assert live.complaints == []


async def test_the_history_is_also_a_table_and_a_file(
    web: WebProcess, workers: list[FakeWorker], chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_live(web, chromium, session_cookie, "?range=15&instance=gpu-02")
    await live.until(HAS_TEXT, ["#apart-legend", "gpu-02"])
    await live.page.click("#history-table summary")
    await live.page.wait_for_selector("#history-table tbody tr")
    rows = await live.page.locator("#history-table tbody tr").count()
    async with live.page.expect_download() as started:
        await live.page.click("[data-export=history]")
    lines = list(csv.DictReader(io.StringIO(await text_of(await started.value))))
    assert len([line for line in lines if line["instance"] == "" and line["requests"] != "0"]) == rows > 80
    own = [line for line in lines if line["instance"] == "gpu-02"]
    assert len(own) == 90
    assert all(float(line["ttft_s_p50"]) > 0 for line in own if line["requests"] != "0")
    assert live.complaints == []


async def test_the_table_is_exported_as_it_is_shown(
    web: WebProcess, workers: list[FakeWorker], fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    workers[0].instances[1].name = "=HYPERLINK(1)"
    workers[1].instances[1].name = "=HYPERLINK(1)"
    for worker in workers:
        fresh_hub.accept(worker.step())
    live = await open_live(web, chromium, session_cookie, "?model=qwen3-30b&sort=name&order=descending")
    await live.until("() => document.querySelectorAll('#instances tbody tr').length === 2")
    await live.page.keyboard.press("p")
    async with live.page.expect_download() as started:
        await live.page.click("[data-export=table]")
    lines = list(csv.DictReader(io.StringIO(await text_of(await started.value))))
    assert [line["name"] for line in lines] == ["gpu-00", "'=HYPERLINK(1)"]
    assert all(line["score_p95"] and line["events_residency"] for line in lines)
    assert live.complaints == []


async def test_polling_carries_filters_history_and_comparison(
    web: WebProcess, workers: list[FakeWorker], fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    live = await open_page(chromium, session_cookie)
    await live.page.add_init_script(NO_SOCKETS)
    await live.page.goto(f"{web.url}/?range=15&instance=gpu-00&versus=gpu-01")
    # Without a steady feed the data grows old while a slow machine loads the page; both words mean "answered".
    await live.until("() => ['polling', 'stale'].includes(document.querySelector('#badge').dataset.state)")
    await live.page.select_option("#workload", "batch")
    await live.until(SHOWS_WORKLOAD, "batch")
    await live.until(HAS_TEXT, ["#compared thead", "gpu-01"])
    rate = await live.text("[data-stat=rate] .stat-number")
    workers[0].rate = 200.0
    for _ in range(8):
        fresh_hub.accept(workers[0].step())
    await live.until("(old) => document.querySelector('[data-stat=rate] .stat-number').textContent !== old", rate)
    assert live.complaints == []
