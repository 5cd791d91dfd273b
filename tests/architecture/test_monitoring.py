"""Dashboard, alert rules and metrics reference speak of metrics that exist, and the reference of all of them."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import proxying

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "dashboards" / "grafana").glob("*.json"))
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*.yml"))
REFERENCE = ROOT / "docs" / "reference" / "metrics.md"
METRIC = re.compile(r"\bpointsman_[a-z0-9_]+")


async def exposed() -> dict[str, str]:
    """Return every metric of a worker with its help text."""
    async with FakeEngine() as engine, proxying(engine) as proxy:
        await proxy.chat()
        async with proxy.client() as client:
            text = (await client.get("/metrics")).body.decode()
    return dict(line.split(" ", 3)[2:] for line in text.splitlines() if line.startswith("# HELP"))


def series_of(metrics: dict[str, str]) -> set[str]:
    return {name + suffix for name in metrics for suffix in ("", "_bucket", "_sum", "_count")}


def expressions(file: Path) -> list[str]:
    if file.suffix == ".json":
        return [target["expr"] for panel in json.loads(file.read_text())["panels"] for target in panel["targets"]]
    return [rule["expr"] for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("file", DASHBOARDS + RULES, ids=lambda file: file.name)
async def test_every_expression_reads_metrics_that_exist(file: Path) -> None:
    known = series_of(await exposed())
    found = {name for expression in expressions(file) for name in METRIC.findall(expression)}
    assert found
    assert found <= known, found - known


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.name)
def test_every_rule_says_what_happened_and_what_to_do(file: Path) -> None:
    for group in yaml.safe_load(file.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            assert rule["annotations"]["action"]
            assert rule["labels"]["severity"] in {"warning", "critical"}


async def test_the_reference_lists_every_metric_with_its_meaning() -> None:
    documented = dict(re.findall(r"^\| `(pointsman_\w+)` \| (.+?) \|$", REFERENCE.read_text(), re.MULTILINE))
    assert documented == await exposed()
