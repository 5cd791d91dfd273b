"""A hot prefix, from the first request of a burst to an alert that is over: the demo as a person watches it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.dashboards.chromium import FLAGS, chromium_path
from tests.e2e.demo import Demo, running_demo
from tests.e2e.processes import eventually, running, stop
from tests.patience import PATIENCE_MS

WINDOW_S = 10
"""The shortest window there is, so that nobody waits for a minute of calm traffic."""
BURST_RATE = 12


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("hotspot"), "instances,read,policies,alerts") as made:
        eventually(made.busy, "every engine takes traffic")
        yield made


@contextmanager
def on_alerts(demo: Demo) -> Iterator[Page]:
    """Open a browser on the alerts page, signed in."""
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE_MS)
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": c.name, "value": c.value or "", "url": demo.web} for c in demo.pages.cookies.jar])
        page = context.new_page()
        page.goto(f"{demo.web}/alerts/")
        yield page
        browser.close()


@pytest.fixture
def page(demo: Demo) -> Iterator[Page]:
    with on_alerts(demo) as page:
        yield page


@contextmanager
def burst(demo: Demo, log: Path) -> Iterator[None]:
    """Send requests that all begin alike until the block ends; none of them may fail."""
    arguments = ["-m", "router.cli", "replay", "--generate", "hot-prefix", "--rate", str(BURST_RATE), "--loop"]
    with running([*arguments, "--target", demo.stack.router, "--output", "json"], log) as replay:
        yield
        assert stop(replay) == 0
    report = json.loads(log.read_text().splitlines()[-1])
    assert report["requests"] > 0
    assert set(report["errors_by_kind"]) <= {"dropped"}, "those that were under way at its end"


@pytest.mark.timeout(1200)
def test_a_hot_prefix_is_an_alert_is_spread_acknowledged_and_over(demo: Demo, page: Page, tmp_path: Path) -> None:
    """How soon it is noticed is measured by tests/benchmarks/test_hotspot_noticed.py."""
    shorten_the_window(demo)
    row = page.locator("#alerts-body tr", has_text="Hot prefix")
    with burst(demo, tmp_path / "burst.json"):
        row.locator(".row-link").click()
        (alert,) = hot_alerts(demo)
        eventually(lambda: "notified" in whats(demo, alert["id"]), "somebody is told")
        page.click("#detail button:has-text('Acknowledge')")
        page.wait_for_selector("#alert-state .alert-state[data-state=acknowledged]")
        key = alert["labels"]["prefix_class"]
        eventually(lambda: is_spread(demo, key), "every instance holds the prefix")
    page.wait_for_selector("#alert-state .alert-state[data-state=resolved]")
    check_timeline(timeline(demo, alert["id"]))


def shorten_the_window(demo: Demo) -> None:
    """Publish the demo's policy with a short window, and wait until a worker has seen a whole one of traffic."""
    url = "/api/v1/policies/demo/"
    current = demo.api.get(url)
    content = current.json()["live"]["content"] | {"hotspot": {"window_s": WINDOW_S}}
    body = {"content": content, "message": "A short window, for a test."}
    answer = demo.api.post(f"{url}publish/", json=body, headers={"If-Match": current.headers["ETag"]})
    assert answer.status_code == 200, answer.text
    eventually(lambda: policy_in_force(demo) == "demo@2", "the policy is in force")
    time.sleep(1.5 * WINDOW_S)  # less than a whole window of calm traffic says nothing


def policy_in_force(demo: Demo) -> str:
    return demo.stack.chat("which policy", model="sim").headers["x-pointsman-policy"]


def hot_alerts(demo: Demo) -> list[dict[str, Any]]:
    answer = demo.api.get("/api/v1/alerts/", params={"kind": "hotspot_class"})
    return list(answer.raise_for_status().json()["results"])


def timeline(demo: Demo, alert_id: int) -> list[dict[str, Any]]:
    """Return what happened to an alert, in the order of time."""
    found = demo.api.get(f"/api/v1/alerts/{alert_id}/").raise_for_status().json()["timeline"]
    return sorted(found, key=lambda entry: datetime.fromisoformat(entry["at"]))


def whats(demo: Demo, alert_id: int) -> list[str]:
    return [entry["what"] for entry in timeline(demo, alert_id)]


def is_spread(demo: Demo, key: str) -> bool:
    """Say whether all eight hold the prefix: brought there by preloads, or by requests that were kept away."""
    done = demo.api.get("/api/v1/preloads/", params={"state": "done"}).raise_for_status().json()["results"]
    widened = {one["instance"] for one in done if one["reason"] == "widen" and one["class_id"] == key}
    mitigated = demo.stack.metrics()["pointsman_hotspot_mitigations_total"]
    text = demo.pages.get("/instances/+preloads/rows/").text
    return bool(widened or mitigated) and f'title="{key}"' in text and "8 of 8" in text.split(f'title="{key}"', 1)[1]


def check_timeline(entries: list[dict[str, Any]]) -> None:
    """Everything that happened is there once, in its order."""
    assert [entry["what"] for entry in entries] == ["fired", "notified", "acknowledged", "resolved"]
    assert entries[0]["text"].startswith("Prefix class")
    assert entries[2]["actor"] != entries[3]["actor"] == "system"
    assert "not seen in 6 evaluations" in entries[3]["text"]
