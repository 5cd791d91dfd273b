"""The public Mooncake conversation trace, through the real worker over eight simulated engines."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from router.core.policy import Policy
from tests.e2e.fleet import stack
from tests.e2e.processes import eventually, run_json
from tests.shared_material import shared_path

REQUESTS = 2000
SPEEDUP = 15


def replay(folder: Path, trace: Path, workload: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Replay on a fleet of its own, so that no policy finds the caches of another."""
    folder.mkdir()
    with stack(folder, speedup=SPEEDUP, policies=(Policy(name="round_robin", scorer="round_robin"),)) as running:
        arguments = ["--target", running.router, "--speedup", str(SPEEDUP), "--limit", str(REQUESTS)]
        arguments += ["--workload", workload, "--max-output", "32", "--output", "json"]
        report = run_json(["-m", "router.cli", "replay", str(trace), *arguments])
        idle = eventually(lambda: _if_idle(running.metrics()), "every counter is 0")
    return report, idle


def _if_idle(metrics: dict[str, float]) -> dict[str, float] | None:
    gauges = ("pointsman_instance_requests{", "pointsman_instance_queued_prefill_tokens{", "pointsman_in_flight")
    return metrics if all(value == 0 for name, value in metrics.items() if name.startswith(gauges)) else None


@pytest.mark.timeout(1200)
def test_the_trace_replays_without_an_error_and_the_product_beats_round_robin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = shared_path("traces/chatbot_mooncake_conversation.jsonl.gz")
    reports = {}
    with ThreadPoolExecutor() as pool:  # side by side: both wait most of the time
        replays = {name: pool.submit(replay, tmp_path / name, trace, name) for name in ("default", "round_robin")}
    for workload, running in replays.items():
        reports[workload], metrics = running.result()
        assert reports[workload]["errors"] == 0
        assert reports[workload]["requests"] == REQUESTS
        assert any(name.startswith("pointsman_instance_requests{") for name in metrics)
    with capsys.disabled():
        for workload, report in reports.items():
            ttft, tpot = report["ttft_s"], report["tpot_s"]
            print(
                f"\n  {workload:12} TTFT mean {ttft['mean'] * 1e3:.0f} ms, p99 {ttft['p99'] * 1e3:.0f} ms; "
                f"TPOT mean {tpot['mean'] * 1e3:.2f} ms; hit ratio {report['hit_ratio']:.3f}",
                end="",
            )
    assert reports["default"]["hit_ratio"] > reports["round_robin"]["hit_ratio"] * 1.2
