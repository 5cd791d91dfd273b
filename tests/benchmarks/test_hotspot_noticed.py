"""How soon a hot prefix is an alert that a person sees: from the first request of a burst to its line on the page."""

import time
from pathlib import Path

import pytest

from tests.e2e.demo import running_demo
from tests.e2e.processes import eventually
from tests.e2e.test_hotspot import burst, on_alerts, shorten_the_window

NOTICED_WITHIN_S = 20.0
pytestmark = [pytest.mark.benchmark, pytest.mark.browser, pytest.mark.timeout(1200)]


def test_a_hot_prefix_is_on_the_page_within_20_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_demo(tmp_path, "instances,read,policies,alerts") as demo:
        eventually(demo.busy, "every engine takes traffic")
        with on_alerts(demo) as page:
            shorten_the_window(demo)
            with burst(demo, tmp_path / "burst.json"):
                began_s = time.monotonic()
                page.locator("#alerts-body tr", has_text="Hot prefix").wait_for()
                noticed_s = time.monotonic() - began_s
    with capsys.disabled():
        print(f"\nnoticed {noticed_s:.1f} s after the burst began")
    assert noticed_s < NOTICED_WITHIN_S
