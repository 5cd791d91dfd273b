"""Simulations that were asked for."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.lab.models import Simulation
from controlplane.lab.services.simulations import create_simulation
from tests.controlplane.conftest import ACTOR

SMALL: dict[str, Any] = {
    "trace": "chatbot",
    "policies": ["multiplicative", "vllm"],
    "fleet": "a100-80g:2",
    "requests": 60,
}
"""A simulation that takes a moment."""


@pytest.fixture
def ask(db: None) -> Callable[..., Simulation]:
    """Ask for a small simulation, with some settings changed."""
    return lambda **changes: create_simulation(actor=ACTOR, settings=SMALL | changes)
