"""The simulator's benchmark measures what it names."""

import json

import pytest

from router.cli import main


def test_figures_are_named_by_the_size_of_the_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sim", "--requests", "300", "--instances", "2", "4", "--output", "json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    for instances in (2, 4):
        assert figures[f"requests_{instances}"] == 300
        assert figures[f"cpu_us_per_request_{instances}"] > 0
    assert figures["peak_rss_mb"] > 10
