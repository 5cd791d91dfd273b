"""Every option and every key of the report is documented."""

import argparse
from pathlib import Path

import msgspec
import pytest

from router.engine import command as engine
from router.replay import command as replay
from router.replay.report import Report

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(("page", "command"), [("simulated-engine.md", engine), ("replay.md", replay)])
def test_every_option_is_documented(page: str, command: object) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    command.add_arguments(parser)  # type: ignore[attr-defined]
    options = {option for action in parser._actions for option in action.option_strings}
    text = (DOCS / page).read_text()
    assert sorted(option for option in options if f"`{option}`" not in text) == []


def test_every_key_of_the_report_is_documented_or_shared_with_the_simulator() -> None:
    shared = {"policy", "requests", "ttft_s", "tpot_s", "e2e_s", "load_max_over_mean", "wall_s"}
    text = (DOCS / "replay.md").read_text()
    keys = {field.name for field in msgspec.structs.fields(Report)}
    assert sorted(key for key in keys - shared if f"`{key}`" not in text) == []


def test_every_engine_path_is_documented() -> None:
    from router.engine.instance import ROUTES

    text = (DOCS / "simulated-engine.md").read_text()
    assert sorted(path for path in ROUTES if f"`{path}`" not in text) == []
