"""``pointsman replay`` as a process: a report in both forms, an end by Ctrl-C, clear refusals."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import orjson
import pytest

from router.replay.report import report_of
from router.replay.tally import Tally
from tests.fakes.step_clock import GatedClock
from tests.patience import PATIENCE_S
from tests.router.engine.serving import serving, until

ROOT = Path(__file__).resolve().parents[3]
INTERFACE_KEYS = ("policy", "requests", "hit_ratio", "ttft_s", "tpot_s", "e2e_s", "load_max_over_mean", "wall_s")


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Twenty requests of a Mooncake trace, invented."""
    rows = [
        {"timestamp": 3000 * (n // 5), "input_length": 1100, "output_length": 8, "hash_ids": [0, n % 3 + 1, 100 + n]}
        for n in range(20)
    ]
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "router.cli", "replay", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_trace_is_replayed_and_reported_as_json(trace_file: Path) -> None:
    async with serving() as engine:
        target = f"http://127.0.0.1:{engine.port}"
        process = await start(str(trace_file), "--target", target, "--speedup", "100", "--output", "json")
        status, out, err = await finish(process)
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert [key for key in INTERFACE_KEYS if key not in report] == []
    assert (report["requests"], report["errors"], report["late"]) == (20, 0, 0)
    assert report["prompt_tokens"] == 20 * 1100
    assert 0.3 < report["hit_ratio"] < 0.95
    assert list(report["ttft_s"]) == ["mean", "p50", "p90", "p99"]


async def test_a_table_is_printed_for_people(trace_file: Path) -> None:
    async with serving() as engine:
        target = f"http://127.0.0.1:{engine.port}"
        process = await start(str(trace_file), "--target", target, "--speedup", "100", "--model-time", "--limit", "5")
        status, out, _ = await finish(process)
    assert status == 0
    assert "5 requests" in out
    assert "model time" in out
    assert "errors: none" in out


@pytest.mark.parametrize("kind", ["conversations", "api"])
async def test_generated_traffic_needs_no_file(kind: str) -> None:
    async with serving() as engine:
        target = f"http://127.0.0.1:{engine.port}"
        process = await start(
            *("--generate", kind, "--rate", "200", "--limit", "60", "--speedup", "50"),
            *("--target", target, "--output", "json", "--max-output", "20"),
        )
        status, out, _ = await finish(process)
    report = json.loads(out)
    assert (status, report["requests"], report["errors"]) == (0, 60, 0)
    assert report["hit_ratio"] > 0.1
    assert report["completion_tokens"] <= 60 * 20


async def test_ctrl_c_ends_with_a_report_of_what_was_done(trace_file: Path) -> None:
    clock = GatedClock()
    async with serving(clock) as engine:
        target = f"http://127.0.0.1:{engine.port}"
        process = await start(str(trace_file), "--target", target, "--loop", "--output", "json")
        await until(lambda: engine.model.running > 0)
        clock.allow(20)
        await until(lambda: engine.counters.generation_tokens > 8)
        process.send_signal(signal.SIGINT)
        status, out, err = await finish(process)
    report = json.loads(out)
    assert (status, err, report["interrupted"]) == (0, "", True)
    assert report["sent"] == report["requests"] + report["errors"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either a trace or --generate"),
        (("--generate", "chatbot", "--speedup", "0"), "--speedup must be above 0"),
        (("--generate", "chatbot", "--target", "nowhere"), "no HTTP address"),
        (("--generate", "chatbot", "--target", "http://127.0.0.1:9"), "does not list its models"),
        (("missing.jsonl",), "cannot be read"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    status, out, err = await finish(await start(*arguments))
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


async def test_failed_requests_make_the_command_fail(trace_file: Path) -> None:
    async with serving(max_queued=0) as engine:
        target = f"http://127.0.0.1:{engine.port}"
        status, out, _ = await finish(
            await start(str(trace_file), "--target", target, "--speedup", "100", "--output", "json")
        )
    assert status == 1
    assert json.loads(out)["errors_by_kind"] == {"stream_503": 20}


def test_model_time_scales_durations_and_nothing_else() -> None:
    tally = Tally(sent=2, done=2, prompt_tokens=10, cached_tokens=5)
    tally.ttft_s.extend([0.1, 0.3])
    tally.instances.update({"a": 3, "b": 1})
    report = report_of(tally, 4.0, time_scale=10.0)
    assert report.ttft_s.mean == pytest.approx(2.0)
    assert (report.wall_s, report.hit_ratio, report.load_max_over_mean) == (4.0, 0.5, 1.5)
    assert report.tpot_s.mean is None
