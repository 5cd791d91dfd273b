"""The benchmark of KV events measures what it names; how fast it is does not matter here."""

import json
import sys

import pytest

from router.bench.event_traffic import Traffic, batches, timed
from router.cli import main
from router.core.prefix.token_chain import TokenHasher
from router.kvevents.decoding import decode_batch
from router.kvevents.residency import EngineResidency


@pytest.mark.skipif(sys.platform == "win32", reason="hands a socket to another process")
def test_every_event_is_applied_and_every_figure_carries_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--publishers", "2", "--events", "4000", "--requests", "50", "--seconds", "0.5", "--output", "json"]
    assert main(["bench", "events", *arguments]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["messages_applied"] > 0
    assert figures["messages_lost"] == 0
    for name in ("decide_us", "decide_cpu_us", "arrival_to_decision_us"):
        for suffix in ("", "_without_events"):
            assert 0 < figures[f"{name}_p50{suffix}"] <= figures[f"{name}_p99{suffix}"]
    assert 0 <= figures["event_lag_ms_p50"] <= figures["event_lag_ms_p99"] <= figures["event_lag_ms_max"]
    assert figures["blocks_by_events"] > 0
    assert 0 < figures["own_core_arrival_to_decision_us_p50"] <= figures["own_core_arrival_to_decision_us_p99"]
    assert 0 < figures["own_core_event_lag_ms_p50"] <= figures["own_core_event_lag_ms_max"]
    assert 0 < figures["own_core_busy_share"] < 1


def test_a_publisher_removes_what_it_stored_and_begins_again() -> None:
    traffic = Traffic(publishers=1, events_per_s=1000, requests_per_s=1, seconds=1.0)
    residency = EngineResidency(TokenHasher(1))
    cycle = [decode_batch(timed(batch, 0.0)) for batch in batches(traffic, 0)]
    for _ in range(2):
        for batch in cycle:
            residency.apply(batch)
    assert len(residency) == traffic.blocks_per_step * 100
    assert residency.counters.orphans == 0
    assert residency.counters.unknown_removals == traffic.blocks_per_step * 100, "only before anything was stored"
