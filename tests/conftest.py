"""What holds for every test."""

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no defect: nothing that is generated and checked has to be fast.
settings.register_profile("pointsman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pointsman")

REQUIRE_ALL = os.environ.get("POINTSMAN_REQUIRE_ALL") == "1"
"""Set in CI: whatever a test would skip for want of must be there."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Turn a skip into a failure where everything must be there."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but POINTSMAN_REQUIRE_ALL=1 forbids it: {report.longrepr}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order tests for processes that run side by side."""
    if hasattr(config, "workerinput"):
        from tests.side_by_side import waiting_first

        waiting_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say how processes share the suite (called by pytest-xdist, which need not be there), unless ``--dist`` does."""
    from tests.side_by_side import FromBothEnds

    return FromBothEnds(config, log) if config.getoption("dist") == "load" else None
