"""A worker records its last minutes for ever: bounded, on one clock over all segments, readable while it is written."""

import asyncio
from pathlib import Path

import pytest

from router.proxy.rolling_recorder import RollingLimits, RollingRecorder
from router.sim.errors import TraceError
from router.sim.traces.segments import Window, load_window, segment_name, segments
from tests.fakes.engine import FakeEngine
from tests.patience import PATIENCE_S
from tests.router.proxy.harness import Proxy, proxying

STARTED_UNIX_S = 1_700_000_000.0
ALL = Window(since_unix_s=0.0, most=1000)
PROMPT = "All happy families are alike; every unhappy family is unhappy in its own way. " * 4


def record(proxy: Proxy, folder: Path, worker: str = "router-0", **limits: float) -> RollingRecorder:
    now_s = asyncio.get_running_loop().time()
    recorder = RollingRecorder(folder, worker, now_s, STARTED_UNIX_S, RollingLimits(**limits))  # type: ignore[arg-type]
    proxy.plane.recorder = recorder
    return recorder


async def test_only_the_newest_segments_stay_and_their_requests_are_on_one_clock(tmp_path: Path) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, tmp_path, span_s=0.0, segments=3)
        for _ in range(6):
            await proxy.chat(PROMPT)
            await asyncio.sleep(0.002)  # segments are named by milliseconds
        recorder.close()
    assert len(segments(tmp_path)) == 3
    found = load_window(tmp_path, ALL).requests
    assert len(found) == 3
    assert found[0].arrival_s == 0.0
    assert found[0].arrival_s < found[1].arrival_s < found[2].arrival_s < 60
    assert {len(one.blocks) for one in found} == {len(found[0].blocks)}
    assert all("happy" not in path.read_text() for path in segments(tmp_path))


async def test_a_segment_that_is_large_enough_ends(tmp_path: Path) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, tmp_path, most_bytes=1, segments=10)
        for _ in range(3):
            await proxy.chat(PROMPT)
            await asyncio.sleep(0.002)
        recorder.close()
    assert len(segments(tmp_path)) == 3


async def test_what_was_served_can_be_read_a_second_later_while_it_goes_on(tmp_path: Path) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, tmp_path)
        await proxy.chat(PROMPT)
        async with asyncio.timeout(PATIENCE_S):
            while not segments(tmp_path)[0].stat().st_size:
                await asyncio.sleep(0.05)
        with segments(tmp_path)[0].open("ab") as file:
            file.write(b'{"t": 1, "in"')
        assert len(load_window(tmp_path, ALL).requests) == 1
        recorder.close()


async def test_a_disk_that_is_full_ends_the_recording_and_no_request(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    async with FakeEngine() as engine, proxying(engine) as proxy:
        recorder = record(proxy, folder)
        folder.rmdir()
        for _ in range(2):
            assert (await proxy.chat(PROMPT)).status == 200
        recorder.close()
    assert not folder.exists()


async def test_several_workers_make_one_trace_and_a_window_takes_the_newest(tmp_path: Path) -> None:
    async with FakeEngine() as engine, proxying(engine) as proxy:
        for worker in ("router-0", "router-1"):
            recorder = record(proxy, tmp_path, worker)
            for _ in range(2):
                await proxy.chat(PROMPT)
            recorder.close()
    assert len(load_window(tmp_path, ALL).requests) == 4
    assert len(load_window(tmp_path, Window(since_unix_s=0.0, most=3)).requests) == 3
    with pytest.raises(TraceError, match="no router worker has recorded a request in that time"):
        load_window(tmp_path, Window(since_unix_s=STARTED_UNIX_S + 3600, most=3))


def test_names_of_workers_cannot_leave_the_folder() -> None:
    assert segment_name("../../etc", 1_700_000_000.0) == ".._.._etc.1700000000000.jsonl"
