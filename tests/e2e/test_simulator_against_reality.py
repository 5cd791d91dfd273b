"""The simulator against the real thing: the same small trace through a live router over simulated engine servers."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from router.core.policy import Policy
from router.sim.metrics import RunSummary
from router.sim.runner import Job, Setting, run_job
from router.sim.scenario import Scenario, fleet_of
from router.sim.traces.generator import generate
from router.sim.traces.loading import load_trace
from router.sim.traces.record import Trace
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter
from router.sim.traffic import RecordedTraffic
from tests.e2e.fleet import stack
from tests.e2e.processes import run_json

ENGINES = 4
PROFILE = "h20"
"""Slow at prefill: first tokens take so long that what the test machine adds to them is little."""
REQUESTS_PER_S = 4.0
DURATION_S = 20.0
ATTEMPTS = 3
MAX_OUTPUT = 40
"""Answers are cut to this many tokens on both sides, so that the test ends soon after the last arrival."""


def recorded(file: Path) -> Trace:
    """Write generated traffic as a recording, and read it back as both sides do."""
    generated = generate("coder", seed=3, duration_s=DURATION_S, requests_per_s=REQUESTS_PER_S)
    with file.open("wb") as output:
        writer = RecordingWriter(output, RecordingHeader(block_tokens=generated.block_tokens))
        for request in generated.requests:
            writer.write(
                RecordedRequest(
                    arrival_s=request.arrival_s,
                    prompt_tokens=request.prompt_tokens,
                    output_tokens=min(MAX_OUTPUT, request.output_tokens),
                    blocks=request.blocks,
                )
            )
    return load_trace(file)


def close(live: dict[str, Any], simulated: RunSummary) -> bool:
    """Say whether the live fleet did what was simulated."""
    hits_agree = abs(live["hit_ratio"] - simulated.hit_ratio) <= 0.03
    return hits_agree and abs(live["ttft_s"]["mean"] / simulated.ttft_s.mean - 1) <= 0.15


@pytest.mark.timeout(240)
def test_they_agree_on_hits_and_on_the_time_to_first_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A busy test machine only ever adds time, so the live side may try again; the simulated side never changes."""
    file = tmp_path / "recording.jsonl"
    scenario = Scenario(trace=recorded(file), fleet=fleet_of(PROFILE, ENGINES), warmup=0.0)
    simulated = run_job(Setting(RecordedTraffic(scenario)), Job(Policy()), lambda _: None).summary
    attempts = []
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with stack(folder, engines=ENGINES, profile=PROFILE) as running:
            live = run_json(["-m", "router.cli", "replay", str(file), "--target", running.router, "--output", "json"])
        assert live["errors"] == 0
        assert live["requests"] == simulated.requests == len(scenario.trace.requests)
        attempts.append(live)
        with capsys.disabled():
            print(
                f"\n  hit ratio: simulated {simulated.hit_ratio:.3f}, live {live['hit_ratio']:.3f}; mean TTFT: "
                f"{simulated.ttft_s.mean * 1e3:.1f} ms, {live['ttft_s']['mean'] * 1e3:.1f} ms; mean TPOT: "
                f"{simulated.tpot_s.mean * 1e3:.2f} ms, {live['tpot_s']['mean'] * 1e3:.2f} ms",
                end="",
            )
        if close(live, simulated):
            break
    assert any(close(live, simulated) for live in attempts), attempts


def test_both_sides_read_the_same_trace(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "recording.jsonl")
    generated = generate("coder", seed=3, duration_s=DURATION_S, requests_per_s=REQUESTS_PER_S)
    assert [r.blocks for r in trace.requests] == [r.blocks for r in generated.requests]
    assert msgspec.structs.replace(trace, requests=()).block_tokens == generated.block_tokens
