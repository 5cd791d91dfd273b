"""A hot prefix, from the first request of a burst to an alert that is over: the demo as a person watches it."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.dashboards.chromium import FLAGS, chromium_path
from tests.e2e.demo import Demo, running_demo
from tests.e2e.processes import eventually, running

WINDOW_S = 10
"""The shortest window there is, so that nobody waits for a minute of calm traffic."""
BURST_S = 25
NOTICED_WITHIN_S = 20.0
RESOLVED_WITHIN_S = 150.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("hotspot"), "instances,read,policies,alerts") as made:
        eventually(made.busy, "every engine takes traffic")
        yield made


@pytest.fixture
def page(demo: Demo) -> Iterator[Page]:
    """A browser on the alerts page, signed in."""
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(30_000)
        context.add_cookies([{"name": c.name, "value": c.value or "", "url": demo.web} for c in demo.pages.cookies.jar])
        page = context.new_page()
        page.goto(f"{demo.web}/alerts/")
        yield page
        browser.close()


@pytest.mark.timeout(400)
def test_a_hot_prefix_is_an_alert_within_20_s_is_spread_acknowledged_and_over(
    demo: Demo, page: Page, tmp_path: Path
) -> None:
    shorten_the_window(demo)
    row = page.locator("#alerts-body tr", has_text="Hot prefix")
    burst = ["-m", "router.cli", "replay", "--generate", "hot-prefix", "--rate", "12", "--duration", str(BURST_S)]
    with running([*burst, "--target", demo.stack.router], tmp_path / "burst.log") as replay:
        began_s = time.monotonic()
        row.wait_for(timeout=NOTICED_WITHIN_S * 1000)
        noticed_s = time.monotonic() - began_s
        assert noticed_s < NOTICED_WITHIN_S
        row.locator(".row-link").click()
        page.click("#detail button:has-text('Acknowledge')")
        page.wait_for_selector("#alert-state .alert-state[data-state=acknowledged]")
        (alert,) = hot_alerts(demo)
        key = alert["labels"]["prefix_class"]
        eventually(lambda: is_spread(demo, key), "every instance holds the prefix")
        assert replay.wait(BURST_S + 60) == 0
    page.wait_for_selector("#alert-state .alert-state[data-state=resolved]", timeout=RESOLVED_WITHIN_S * 1000)
    check_timeline(demo.api.get(f"/api/v1/alerts/{alert['id']}/").json())


def shorten_the_window(demo: Demo) -> None:
    """Publish the demo's policy with a short window, and wait until a worker has seen a whole one of traffic."""
    url = "/api/v1/policies/demo/"
    current = demo.api.get(url)
    content = current.json()["live"]["content"] | {"hotspot": {"window_s": WINDOW_S}}
    body = {"content": content, "message": "A short window, for a test."}
    answer = demo.api.post(f"{url}publish/", json=body, headers={"If-Match": current.headers["ETag"]})
    assert answer.status_code == 200, answer.text
    eventually(lambda: policy_in_force(demo) == "demo@2", "the policy is in force")
    ready_s = time.monotonic() + 1.5 * WINDOW_S
    eventually(lambda: time.monotonic() > ready_s, "a whole window of calm traffic")


def policy_in_force(demo: Demo) -> str:
    return demo.stack.chat("which policy", model="sim").headers["x-pointsman-policy"]


def hot_alerts(demo: Demo) -> list[dict[str, Any]]:
    answer = demo.api.get("/api/v1/alerts/", params={"kind": "hotspot_class"})
    return list(answer.raise_for_status().json()["results"])


def is_spread(demo: Demo, key: str) -> bool:
    """Say whether all eight hold the prefix: brought there by preloads, or by requests that were kept away."""
    done = demo.api.get("/api/v1/preloads/", params={"state": "done"}).raise_for_status().json()["results"]
    widened = {one["instance"] for one in done if one["reason"] == "widen" and one["class_id"] == key}
    mitigated = demo.stack.metrics()["pointsman_hotspot_mitigations_total"]
    text = demo.pages.get("/instances/+preloads/rows/").text
    return bool(widened or mitigated) and f'title="{key}"' in text and "8 of 8" in text.split(f'title="{key}"', 1)[1]


def check_timeline(alert: dict[str, Any]) -> None:
    """Everything that happened is there once, in its order."""
    entries = sorted(alert["timeline"], key=lambda entry: datetime.fromisoformat(entry["at"]))
    assert [entry["what"] for entry in entries] == ["fired", "notified", "acknowledged", "resolved"]
    assert entries[0]["text"].startswith("Prefix class")
    assert entries[2]["actor"] != entries[3]["actor"] == "system"
    assert "not seen in 6 evaluations" in entries[3]["text"]
