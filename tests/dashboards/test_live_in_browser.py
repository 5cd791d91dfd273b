"""The live page in a real browser: it moves, it explains, it survives, and it never complains."""

import re
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from playwright.async_api import Browser, expect

from controlplane.accounts.actor import SYSTEM
from controlplane.admission.services import set_admission
from controlplane.telemetry.hub import Hub
from router.config import AdmissionConfig
from tests.dashboards.feeding import feeding
from tests.dashboards.watched_page import WatchedPage, open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])]

BADGE_IS = "(state) => document.querySelector('#badge').dataset.state === state"
# Without a steady feed the data grows old while a slow machine loads the page; both words mean "connected".
CONNECTED = "() => ['live', 'stale'].includes(document.querySelector('#badge').dataset.state)"
PICTURE_IS_NOT = "(old) => document.querySelector('#plane').toDataURL() !== old"
TWO_PICTURES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TEXT_IS_NOT = "([selector, old]) => document.querySelector(selector).textContent !== old"
RATE = "[data-stat=rate] .stat-number"
# Says of which moment the newest frame is that came, shown or not.
NOTE_FRAMES = """
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", (event) => {
      window.receivedS = JSON.parse(event.data).time_unix_s ?? window.receivedS;
    });
  }
};
"""
# Counts what the painter of the plane is given to paint.
COUNT_SCENES = """
window.scenes = 0;
const planes = new Set();
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (what, ...given) {
  if (what.kind === "plane") planes.add(what.id);
  if (what.scene && planes.has(what.id)) window.scenes += 1;
  return post.call(this, what, ...given);
};
"""
# Observers that are older are told before.
SIGHT_IS_TOLD = """(selector) => new Promise((done) => {
  const observer = new IntersectionObserver(([{ isIntersecting }]) => {
    observer.disconnect();
    done(isIntersecting);
  }, { rootMargin: "160px 0px" });
  observer.observe(document.querySelector(selector));
})"""


@pytest.fixture
def worker(fresh_hub: Hub) -> FakeWorker:
    """A worker whose first half minute of traffic has been heard."""
    worker = FakeWorker(8, 40.0)
    for _ in range(120):
        fresh_hub.accept(worker.step())
    return worker


@pytest_asyncio.fixture(loop_scope="session")
async def live(
    web: WebProcess, worker: FakeWorker, chromium: Browser, session_cookie: dict[str, Any]
) -> AsyncIterator[WatchedPage]:
    """The live page, connected."""
    watched = await open_page(chromium, session_cookie)
    await watched.page.add_init_script(NOTE_FRAMES + COUNT_SCENES)
    await watched.page.goto(web.url)
    await watched.until(CONNECTED)
    yield watched
    assert watched.complaints == []


async def test_numbers_and_picture_move_when_snapshots_arrive(
    live: WatchedPage, fresh_hub: Hub, worker: FakeWorker
) -> None:
    rate, picture = await live.text(RATE), await canvas(live)
    worker.rate = 400.0
    for _ in range(4):
        fresh_hub.accept(worker.step())
    await live.until(TEXT_IS_NOT, [RATE, rate])
    await live.until(PICTURE_IS_NOT, picture)


async def test_the_page_says_when_other_web_processes_are_not_heard(
    live: WatchedPage, fresh_hub: Hub, worker: FakeWorker
) -> None:
    note = live.page.locator("#scope-note")
    assert await note.is_hidden()
    fresh_hub.is_whole = lambda: False
    fresh_hub.accept(worker.step())
    await live.until("() => document.querySelector('#scope-note').textContent.includes('Redis does not answer')")
    assert await note.is_visible()
    fresh_hub.is_whole = lambda: True
    fresh_hub.accept(worker.step())
    await live.until("() => document.querySelector('#scope-note').hidden")


async def test_the_door_is_shown_once_instances_can_be_full(live: WatchedPage) -> None:
    assert await live.page.locator("#door").is_hidden()
    await sync_to_async(set_admission)(actor=SYSTEM, rule=AdmissionConfig(instance_requests=2), expected=0)
    await live.page.click("[data-set='range=15']")  # the past is asked for at once, and with it what can be full
    await live.page.wait_for_selector("#door", state="visible")


async def test_the_last_decision_is_explained_in_the_table(live: WatchedPage, fresh_hub: Hub) -> None:
    decision = fresh_hub.decisions.newest()
    assert decision is not None
    assert await live.text("#decision-chosen") == decision.chosen
    row = live.page.locator("#instances tbody tr.is-chosen")
    assert await row.count() == 1
    winner = decision.candidates[0]
    assert await row.locator("[data-cell=name]").text_content() == winner.instance
    assert await row.locator("[data-cell=score]").text_content() == f"{winner.score:,.0f}"
    assert await row.locator("[data-cell=times]").text_content() == "1.0×"
    assert winner.instance in await live.text("#plane-caption")


async def test_pause_holds_the_picture_and_resume_shows_the_present(
    live: WatchedPage, fresh_hub: Hub, worker: FakeWorker
) -> None:
    await live.page.keyboard.press("p")
    await live.until(BADGE_IS, "paused")
    rate = await live.text(RATE)
    worker.rate = 400.0
    await next_frame_arrives(live, fresh_hub, worker)
    assert await live.text(RATE) == rate
    await live.page.keyboard.press("p")
    await live.until(CONNECTED)
    await live.until(TEXT_IS_NOT, [RATE, rate])


async def test_a_fleet_that_falls_silent_is_called_stale(live: WatchedPage, fresh_hub: Hub, worker: FakeWorker) -> None:
    async with feeding(fresh_hub, worker):
        await live.until(BADGE_IS, "live")
    await live.until(BADGE_IS, "stale")
    assert (await live.text("#badge")).startswith("stale · ")


async def test_the_page_reconnects_after_the_server_restarts(
    live: WatchedPage, web: WebProcess, fresh_hub: Hub, worker: FakeWorker
) -> None:
    await web.stop()
    await live.until(BADGE_IS, "reconnecting")
    live.complaints.clear()
    await web.start()
    worker.rate = 400.0
    rate = await live.text(RATE)
    fresh_hub.accept(worker.step())
    await live.until(CONNECTED)
    await live.until(TEXT_IS_NOT, [RATE, rate])
    live.complaints[:] = [text for text in live.complaints if "ERR_CONNECTION_REFUSED" not in text]


async def test_polling_takes_over_where_sockets_are_blocked(
    web: WebProcess, worker: FakeWorker, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.add_init_script(
        "window.WebSocket = class extends EventTarget { constructor() { super(); "
        "setTimeout(() => this.dispatchEvent(new CloseEvent('close', { code: 1006 }))); } close() {} };"
    )
    await watched.page.goto(web.url)
    async with feeding(fresh_hub, worker):
        await watched.until(BADGE_IS, "polling")
        rate = await watched.text(RATE)
        worker.rate = 400.0
        await watched.until(TEXT_IS_NOT, [RATE, rate])
    assert watched.complaints == []


async def test_the_first_paint_has_the_numbers_that_the_script_shows_then(
    web: WebProcess, worker: FakeWorker, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.add_init_script("window.WebSocket = class extends EventTarget { close() {} };")
    answer = await watched.page.goto(web.url)
    assert answer is not None
    said = re.findall(r'stat-number">([^<]*)</span> <small>([^<]*)<', await answer.text())
    assert "–" not in dict(said)
    await watched.page.wait_for_selector("#instances tbody tr")
    numbers = await watched.page.locator("#strip .stat-number").all_text_contents()
    units = await watched.page.locator("#strip small").all_text_contents()
    assert list(zip(numbers, units, strict=True)) == said


async def test_rows_out_of_sight_follow_as_well(live: WatchedPage, fresh_hub: Hub, worker: FakeWorker) -> None:
    await live.page.set_viewport_size({"width": 1440, "height": 300})
    assert not await live.page.evaluate(SIGHT_IS_TOLD, "#instances")
    for instance in worker.instances:
        instance.queued_tokens = 5e6
    fresh_hub.accept(worker.step())
    cells = live.page.locator("#instances [data-cell=now-queued]")
    assert await cells.count() == 8
    await live.until(
        "() => [...document.querySelectorAll('#instances [data-cell=now-queued]')]"
        ".every((cell) => cell.textContent.endsWith('M'))"
    )


async def test_what_comes_into_sight_is_drawn(live: WatchedPage, fresh_hub: Hub, worker: FakeWorker) -> None:
    await live.page.set_viewport_size({"width": 1440, "height": 300})
    await live.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert not await live.page.evaluate(SIGHT_IS_TOLD, "#plane")
    scenes, rate = await live.page.evaluate("scenes"), await live.text(RATE)
    worker.rate = 400.0
    for _ in range(4):
        await next_frame_arrives(live, fresh_hub, worker)
    await live.until(TEXT_IS_NOT, [RATE, rate])
    assert await live.page.evaluate("scenes") == scenes > 0
    picture = await canvas(live)
    await live.page.evaluate("scrollTo(0, 0)")
    await live.until(PICTURE_IS_NOT, picture)


async def test_filters_sorting_and_views_are_in_the_address(live: WatchedPage, web: WebProcess) -> None:
    await live.page.click("th[data-key=score] button")
    await live.page.click("[data-set='plane=now']")
    await live.page.click("[data-set='spread=instance']")
    await live.page.fill("#find", "gpu-0")
    await live.page.locator("#instances tbody tr").nth(2).click()
    address = live.page.url
    picked = await live.page.locator("#instances tbody tr[aria-selected=true] [data-cell=name]").text_content()
    assert "plane=now" in address
    assert "sort=score" in address
    assert f"instance={picked}" in address
    await live.page.goto(address)
    await live.until(CONNECTED)
    assert await live.page.get_attribute("th[data-key=score]", "aria-sort") == "ascending"
    assert await live.page.get_attribute("[data-set='plane=now']", "aria-pressed") == "true"
    assert await live.page.locator("tr[aria-selected=true] [data-cell=name]").text_content() == picked


async def test_the_wall_is_one_screen(live: WatchedPage) -> None:
    await live.page.keyboard.press("w")
    await live.page.wait_for_selector(".rail", state="hidden")
    assert "wall=1" in live.page.url
    assert await live.overflow_px() == 0
    assert await live.page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    await live.keep_screenshot("live-wall")
    await live.page.keyboard.press("w")
    await live.page.wait_for_selector(".rail", state="visible")


async def test_keys_walk_the_table_and_find_an_instance(live: WatchedPage) -> None:
    await live.page.keyboard.press("j")
    await live.page.keyboard.press("j")
    assert await live.page.locator("tr[aria-selected=true] [data-cell=name]").text_content() == "gpu-01"
    await live.page.keyboard.press("k")
    assert await live.page.locator("tr[aria-selected=true] [data-cell=name]").text_content() == "gpu-00"
    await live.page.keyboard.press("Escape")
    assert await live.page.locator("tr[aria-selected=true]").count() == 0
    await live.page.keyboard.press("/")
    await live.page.keyboard.type("gpu-07")
    await live.until("() => document.querySelectorAll('#instances tbody tr').length === 1")
    assert await live.text("#instances-note") == "1 of 8"


async def test_pointing_at_a_row_names_its_dot(live: WatchedPage) -> None:
    picture = await canvas(live)
    await live.page.hover("#instances tbody tr:nth-child(5)")
    await live.until(PICTURE_IS_NOT, picture)


async def test_the_theme_can_be_chosen_and_is_remembered(live: WatchedPage) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    seen = set()
    for _ in range(2):
        await live.page.click("[data-theme-switch]")
        seen.add(await live.page.evaluate(background))
    assert len(seen) == 2
    chosen = await live.page.evaluate(background)
    await live.page.reload()
    await live.until(CONNECTED)
    assert await live.page.evaluate(background) == chosen


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [360, 1440])
async def test_it_fits_every_window(
    web: WebProcess, worker: FakeWorker, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    watched = await open_page(
        chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    await watched.page.goto(web.url)
    await watched.until(CONNECTED)
    await watched.page.wait_for_selector("#distribution[aria-label*='P95']")
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"live-{scheme}-{width}")
    assert watched.complaints == []


async def test_no_column_is_cut_beside_the_scroll_bar_of_a_1440_px_window(
    web: WebProcess, worker: FakeWorker, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie, viewport={"width": 1440 - 16, "height": 900})
    await watched.page.goto(web.url)
    await watched.until(CONNECTED)
    cut_px = "(table) => table.parentElement.scrollWidth - table.parentElement.clientWidth"
    await watched.page.locator("#instances").scroll_into_view_if_needed()
    assert await watched.page.locator("#instances").evaluate(cut_px) == 0


async def test_64_instances_are_readable_and_fast(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    big = FakeWorker(64, 300.0)
    for _ in range(120):
        fresh_hub.accept(big.step())
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(web.url)
    await watched.until(CONNECTED)
    assert await watched.page.locator("#instances tbody tr").count() == 64
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot("live-64-instances")
    assert watched.complaints == []


async def test_without_instances_the_page_teaches_how_to_register_one(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    await watched.page.goto(web.url)
    await watched.page.wait_for_selector("#no-workers:not([hidden])")
    fresh_hub.accept(FakeWorker(0, 0.0, name="empty").step())
    await watched.page.wait_for_selector("#no-instances:not([hidden])")
    await expect(watched.page.locator("#snippet-register").first).to_contain_text(
        f"curl -X PUT {web.url}/api/v1/instances/"
    )
    assert not await watched.page.is_visible("#live")
    await watched.keep_screenshot("live-no-instances")
    fresh_hub.accept(FakeWorker(2, 0.0).step())
    await watched.page.wait_for_selector("#no-traffic:not([hidden])")
    await expect(watched.page.locator("#snippet-send").first).to_contain_text("/v1/chat/completions")
    await watched.keep_screenshot("live-no-traffic")
    assert watched.complaints == []


async def test_who_is_signed_out_is_asked_to_sign_in(live: WatchedPage, web: WebProcess) -> None:
    await live.context.clear_cookies()
    await web.stop()
    await web.start()
    await live.page.wait_for_url("**/login/**")
    live.complaints.clear()


async def canvas(live: WatchedPage) -> str:
    """Return the plane as it is painted."""
    return str(await live.page.evaluate("document.querySelector('#plane').toDataURL()"))


async def next_frame_arrives(live: WatchedPage, fresh_hub: Hub, worker: FakeWorker) -> None:
    """Have a worker report, and wait until the browser has received a frame that holds it."""
    then_s = time.time()
    fresh_hub.accept(worker.step())
    await live.until("(then) => window.receivedS >= then", then_s)
    await live.page.evaluate(TWO_PICTURES)
