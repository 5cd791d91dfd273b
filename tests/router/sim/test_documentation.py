"""The simulator's page names everything that can be named on its command line."""

import argparse
from pathlib import Path

import pytest

from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.scorers import SCORERS
from router.sim import command
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.loading import TraceFormat

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "simulator.md").read_text()
NOT_ON_THE_PAGE = {"--help", "--exact-queue"}
"""Options whose own help says it all."""


@pytest.mark.parametrize("name", [*SCORERS, *GENERATORS, *HARDWARE_PROFILES, *TraceFormat])
def test_every_name_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_parameter_is_documented(scorer: str) -> None:
    assert all(f"`{parameter}`" in PAGE for parameter in SCORERS[scorer].defaults)


def test_every_option_is_documented() -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    assert {option for option in options if option not in PAGE} <= NOT_ON_THE_PAGE


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_the_published_means_are_those_of_the_generators(name: str) -> None:
    profile = GENERATORS[name]
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    for value in (
        f"{profile.requests_per_s:.2f}" if profile.requests_per_s < 10 else f"{profile.requests_per_s}",
        f"{profile.mean_prompt_tokens:,.0f}",
        f"{profile.mean_output_tokens:,.0f}",
        f"{profile.ideal_hit_ratio:.3f}"[1:],
    ):
        assert value in row
