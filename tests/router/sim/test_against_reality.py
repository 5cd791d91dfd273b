"""The simulator against the real thing: the same small trace through a live router over simulated engine servers.

The live side is on a clock on which the work of the test machine takes no time, as it takes none in the simulator.
"""

from pathlib import Path

import msgspec
import pytest

from router.core.policy import Policy
from router.sim.runner import Job, Setting, run_job
from router.sim.scenario import Scenario, fleet_of
from router.sim.traces.generator import generate
from router.sim.traces.loading import load_trace
from router.sim.traces.record import Trace
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter
from router.sim.traffic import RecordedTraffic
from tests.router.replay.live import replayed

ENGINES = 4
PROFILE = "h20"
REQUESTS_PER_S = 4.0
DURATION_S = 20.0
MAX_OUTPUT = 40
"""Answers are cut to this many tokens on both sides: every token is a step of an engine."""


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


def test_they_agree_on_hits_and_on_the_time_to_first_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = recorded(tmp_path / "recording.jsonl")
    scenario = Scenario(trace=trace, fleet=fleet_of(PROFILE, ENGINES), warmup=0.0)
    simulated = run_job(Setting(RecordedTraffic(scenario)), Job(Policy()), lambda _: None).summary
    live = replayed(trace, engines=ENGINES, profile=PROFILE)
    with capsys.disabled():
        print(
            f"\n  hit ratio: simulated {simulated.hit_ratio:.3f}, live {live.hit_ratio:.3f}; mean TTFT: "
            f"{simulated.ttft_s.mean * 1e3:.1f} ms, {live.ttft_s.mean * 1e3:.1f} ms; mean TPOT: "
            f"{simulated.tpot_s.mean * 1e3:.2f} ms, {live.tpot_s.mean * 1e3:.2f} ms",
            end="",
        )
    assert live.errors == 0
    assert live.requests == simulated.requests == len(trace.requests)
    assert live.hit_ratio == pytest.approx(simulated.hit_ratio, abs=0.005)
    assert live.tpot_s.mean == pytest.approx(simulated.tpot_s.mean, rel=0.02)
    assert live.ttft_s.mean == pytest.approx(simulated.ttft_s.mean, rel=0.02)


def test_both_sides_read_the_same_trace(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "recording.jsonl")
    generated = generate("coder", seed=3, duration_s=DURATION_S, requests_per_s=REQUESTS_PER_S)
    assert [r.blocks for r in trace.requests] == [r.blocks for r in generated.requests]
    assert msgspec.structs.replace(trace, requests=()).block_tokens == generated.block_tokens
