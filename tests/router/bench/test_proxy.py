"""The data plane's benchmark measures what it says; how fast it is does not matter here."""

import json
import sys

import pytest

from router.cli import main


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_every_figure_carries_its_unit_and_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "proxy", "--output", "json", "--seconds", "0.5", "--soak-seconds", "0.2"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["failures"] == 0
    for name in (
        "cpu_us_per_request_1kb",
        "cpu_us_per_request_32kb",
        "cpu_us_per_paced_chunk",
        "requests_per_s_1kb",
        "rss_mb_started",
    ):
        assert figures[name] > 0, name
    assert {"added_latency_us_p50", "added_first_byte_us_p50", "added_gap_ms_p99_500_streams"} <= figures.keys()
