"""A worker records what it serves as a trace that the simulator and the replayer read."""

import asyncio
from pathlib import Path

from router.proxy.recorder import Recorder
from router.sim.traces.loading import load_trace
from tests.fakes.engine import FakeEngine
from tests.router.proxy.harness import Proxy, proxying

PROMPT = "All happy families are alike; every unhappy family is unhappy in its own way. " * 4


def record(proxy: Proxy, file: Path, most_requests: int = 100) -> Recorder:
    recorder = Recorder(file.open("wb"), asyncio.get_running_loop().time(), 1_700_000_000.0, most_requests)
    proxy.plane.recorder = recorder
    return recorder


async def test_what_was_served_can_be_simulated_and_holds_no_text(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, file)
        for _ in range(2):
            assert (await proxy.chat(PROMPT)).status == 200
        await proxy.settle()
        recorder.close()
    first, second = load_trace(file).requests
    assert first.blocks == second.blocks
    assert len(first.blocks) >= 8
    assert 0 <= first.arrival_s <= second.arrival_s
    assert "happy" not in file.read_text()
    assert '"outcome"' not in file.read_text(), "both were done, which is the default"


async def test_refused_requests_stay_out_of_the_trace(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, file)
        await proxy.chat(PROMPT)
        proxy.plane.fleet.apply([], 0.0)
        assert (await proxy.chat(PROMPT)).status >= 400
        recorder.close()
    assert '"refused"' in file.read_text()
    assert len(load_trace(file).requests) == 1


async def test_a_recording_ends_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, file, most_requests=1)
        for _ in range(3):
            await proxy.chat(PROMPT)
        recorder.close()
    assert len(load_trace(file).requests) == 1
