"""Every page passes axe: nothing serious, in dark and in light."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services import tenants
from controlplane.aliases.services import put_alias
from controlplane.aliases.target import Target
from controlplane.fleet.services import registration
from controlplane.fleet.spec import InstanceSpec
from controlplane.slos.services import put_slo
from controlplane.telemetry.hub import Hub
from tests.dashboards.watched_page import open_page
from tests.dashboards.web_process import WebProcess
from tests.fakes.snapshots import FakeWorker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])]

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
RUN = """async () => (await axe.run(document, { resultTypes: ["violations"],
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`)"""
PATHS = (
    "/",
    "/?plane=now&spread=instance&instance=gpu-01",
    "/?range=15&spread=histogram&instance=gpu-01&versus=gpu-02&workload=coder",
    "/decisions/",
    "/instances/",
    "/instances/engine-1/",
    "/instances/+new/",
    "/policies/default/",
    "/workloads/",
    "/workloads/default/shadow/",
    "/decisions/never-seen/",
    "/settings/",
    "/slos/",
    "/tenants/acme/",
    "/audit/",
)


@pytest.fixture
def registered(transactional_db: None) -> None:
    tenants.create_tenant(actor=SYSTEM, name="acme")
    put_slo(actor=SYSTEM, workload="default", ttft_s=2.0)
    put_alias(actor=SYSTEM, name="chat", targets=[Target("m", 95.0), Target("n", 5.0)], description="A canary.")
    registration.register(actor=SYSTEM, spec=InstanceSpec(name="engine-1", url="http://10.0.0.1:8000"))


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_axe_finds_nothing_serious(
    registered: None,
    web: WebProcess,
    fresh_hub: Hub,
    chromium: Browser,
    session_cookie: dict[str, Any],
    scheme: str,
) -> None:
    worker = FakeWorker(4, 40.0)
    for _ in range(20):
        fresh_hub.accept(worker.step())
    watched = await open_page(chromium, session_cookie, color_scheme=scheme, reduced_motion="reduce")
    found = {}
    decision = fresh_hub.decisions.newest()
    assert decision is not None
    for path in (*PATHS, f"/decisions/{decision.request_id}/"):
        answer = await watched.page.goto(web.url + path)
        assert answer is not None
        assert answer.ok, path
        await watched.page.wait_for_load_state("load")
        await watched.page.evaluate(AXE.read_text())
        faults = await watched.page.evaluate(RUN)
        if faults:
            found[path] = faults
    assert found == {}
