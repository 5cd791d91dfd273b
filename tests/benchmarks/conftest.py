"""Benchmarks are run by ``pytest -m benchmark`` alone: their figures mean nothing beside other tests."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave this folder out unless a marker expression asks for benchmarks."""
    if "benchmark" in config.option.markexpr:
        return
    left_out = [item for item in items if _HERE in item.path.parents]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _HERE not in item.path.parents]
