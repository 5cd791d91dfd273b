"""The proxy's tests run on uvloop, as the worker does."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tell pytest-asyncio which loop the tests of this folder run in."""
    return {"uvloop": uvloop.new_event_loop}
