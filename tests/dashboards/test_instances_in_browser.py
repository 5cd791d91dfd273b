"""The instances pages in a real browser: from the form to draining, on every window."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from msgspec.structs import replace
from playwright.async_api import Browser, expect

from controlplane.fleet.models import Instance
from controlplane.telemetry.hub import Hub
from router.core.instance import InstanceState
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


async def test_from_registration_to_drained(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any]
) -> None:
    watched = await open_page(chromium, session_cookie)
    page = watched.page
    await page.goto(f"{web.url}/instances/")
    await page.click("text=Register an instance")
    await page.fill("#id_name", "gpu-9")
    await page.fill("#id_url", "http://10.0.0.9:8000")
    await expect(watched.page.locator("#snippet-register").first).to_contain_text("/api/v1/instances/gpu-9/")
    await expect(watched.page.locator("#snippet-register").first).to_contain_text('{"url":"http://10.0.0.9:8000"}')
    await page.fill("#id_data_parallel_ranks", "2")
    await page.fill("#id_kv_events", "tcp://10.0.0.9:5557")
    await expect(watched.page.locator("#snippet-register").first).to_contain_text(
        '"kv_events":{"endpoint":"tcp://10.0.0.9:5557"},"data_parallel_ranks":2}'
    )
    await page.fill("#id_data_parallel_ranks", "")
    await page.fill("#id_kv_events", "")
    await watched.keep_screenshot("instance-register")
    await page.click("button[type=submit]:has-text('Register and probe')")
    await page.wait_for_url("**/instances/gpu-9/")
    made = await Instance.objects.aget(name="gpu-9")
    await Instance.objects.filter(pk=made.pk).aupdate(state=InstanceState.READY, probe_ok=True)
    worker = FakeWorker(1, rate=200.0)
    reported(fresh_hub, worker, made, in_flight=3)
    await page.wait_for_selector(".status-line .state[data-state=ready]")
    await page.click("button:has-text('Drain')")
    await page.wait_for_selector(".notice:has-text('3 requests still running')")
    reported(fresh_hub, worker, made, in_flight=1)
    await page.wait_for_selector(".notice:has-text('1 request still running')")
    await watched.keep_screenshot("instance-draining")
    await Instance.objects.filter(pk=made.pk).aupdate(state=InstanceState.DRAINED)
    await page.wait_for_selector(".notice:has-text('Drained: nothing runs there')")
    reported(fresh_hub, worker, made, in_flight=0)
    await page.click("text=Remove…")
    await page.click("dialog button:has-text('Remove')")
    await page.wait_for_url("**/instances/")
    assert await sync_to_async(Instance.objects.exclude(state=InstanceState.REMOVED).count)() == 0
    assert watched.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 1440), ("dark", 360), ("light", 360)])
async def test_it_fits_every_window(
    web: WebProcess, fresh_hub: Hub, chromium: Browser, session_cookie: dict[str, Any], scheme: str, width: int
) -> None:
    made = await Instance.objects.acreate(
        name="gpu-7",
        url="http://10.0.0.7:8000",
        state=InstanceState.READY,
        state_since="2026-01-01T00:00Z",
        probe_due_at="2026-01-01T00:00Z",
    )
    reported(fresh_hub, FakeWorker(1, rate=200.0), made, in_flight=3)
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, viewport={"width": width, "height": 900})
    await watched.page.goto(f"{web.url}/instances/")
    await watched.page.click(".row-link")
    await watched.page.wait_for_url("**/instances/gpu-7/")
    await watched.page.wait_for_selector("[data-figure] .main-svg")
    assert await watched.page.get_attribute("[data-walk] tbody tr", "aria-selected") == "true"
    assert await watched.overflow_px() == 0
    await watched.keep_screenshot(f"instances-{scheme}-{width}")
    assert watched.complaints == []


def reported(hub: Hub, worker: FakeWorker, instance: Instance, in_flight: int) -> None:
    """Let a worker say what it has at an instance."""
    snapshot = worker.step()
    sample = replace(
        snapshot.instances[0], id=str(instance.pk), name=instance.name, own_requests=in_flight, bs=in_flight
    )
    assert hub.accept(replace(snapshot, instances=(sample,)))
