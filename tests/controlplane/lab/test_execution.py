"""Real child processes: what they give, and that they end when they should."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from controlplane.lab import selectors, tasks
from controlplane.lab.child.order import TraceFile
from controlplane.lab.child_process import ChildProcess, running
from controlplane.lab.execution import execute, order_of
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation
from controlplane.lab.services.claims import claim_next
from controlplane.lab.services.simulations import cancel_simulation
from tests.controlplane.conftest import ACTOR
from tests.patience import PATIENCE_S

Ask = Callable[..., Simulation]
LONG = {"trace": "coder", "requests": 20_000, "policies": ["multiplicative"], "rate_scales": [8.0]}
"""Settings of a simulation that takes minutes."""
pytestmark = pytest.mark.django_db(transaction=True)


def gone(group: int) -> bool:
    """Return whether nothing of a process group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_small_simulation_runs_to_its_result(ask: Ask) -> None:
    made = ask(rate_scales=[0.5, 1.0])
    tasks.work()
    made.refresh_from_db()
    assert (made.life, made.reason, made.claim, made.progress) == (State.DONE, "", None, 1.0)
    found = selectors.comparison(made.pk)
    assert [(run.summary.policy, run.rate_scale) for run in found.runs] == [
        ("multiplicative", 0.5),
        ("vllm", 0.5),
        ("multiplicative", 1.0),
        ("vllm", 1.0),
    ]
    assert all(run.summary.ttft_s.mean > 0 for run in found.runs)
    assert (found.provenance.trace, found.provenance.instances) == ("chatbot", 2)


def test_the_same_settings_give_the_same_numbers(ask: Ask) -> None:
    ids = [ask().pk, ask().pk]
    tasks.work()
    tasks.work()
    one, other = (
        [msgspec.structs.replace(run.summary, wall_s=0.0) for run in selectors.comparison(pk).runs] for pk in ids
    )
    assert one == other


def test_a_sweep_finds_saturation_and_stays_within_the_limit(ask: Ask) -> None:
    made = ask(sweep=True, policies=["multiplicative"], requests=120)
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.DONE, made.reason
    found = selectors.comparison(made.pk)
    assert set(found.saturation) == {"multiplicative"}
    assert len(found.runs) == 5
    assert all(run.summary.requests <= 120 for run in found.runs)


def test_more_policies_run_at_once_where_that_is_allowed(ask: Ask, settings: object) -> None:
    settings.LAB_PROCESSES = 2  # type: ignore[attr-defined]
    made = ask()
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.DONE, made.reason


def test_what_cannot_be_run_fails_with_the_reason(ask: Ask) -> None:
    made = ask(requests_per_s=1e-6, duration_s=1.0)
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.FAILED
    assert "are none" in made.reason


def test_a_run_that_takes_too_long_is_ended(ask: Ask, settings: object) -> None:
    settings.LAB_TIME_LIMIT_S = 1.0  # type: ignore[attr-defined]
    made = ask(**LONG)
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.FAILED
    assert "longer than 1 s" in made.reason


def test_a_run_that_needs_too_much_memory_fails_alone(ask: Ask, tmp_path: Path) -> None:
    order = msgspec.structs.replace(order_of(ask(**LONG), tmp_path / "result.json"), memory_bytes=90 << 20)
    with running(order, tmp_path) as child:
        assert child.wait(PATIENCE_S) == 3, child.last_words()
        assert child.fault is not None
        assert "90 MiB of memory" in child.fault.reason


def test_a_cancelled_run_is_ended_with_its_process(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    made, groups = ask(**LONG), []
    start = ChildProcess.__init__

    def noted(self: ChildProcess, *args: object) -> None:
        start(self, *args)  # type: ignore[arg-type]
        groups.append(self.pid)
        cancel_simulation(actor=ACTOR, simulation_id=made.pk)

    monkeypatch.setattr(ChildProcess, "__init__", noted)
    claimed = claim_next(1)
    assert claimed is not None
    execute(claimed)
    made.refresh_from_db()
    assert made.life is State.CANCELLED
    assert [gone(group) for group in groups] == [True]


def test_a_child_that_dies_is_a_failed_run(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ask(**LONG)
    start = ChildProcess.__init__

    def killed(self: ChildProcess, *args: object) -> None:
        start(self, *args)  # type: ignore[arg-type]
        os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(ChildProcess, "__init__", killed)
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.FAILED
    assert "signal 9" in made.reason


def test_progress_is_told_while_it_runs(ask: Ask, tmp_path: Path) -> None:
    order = order_of(ask(**LONG | {"rate_scales": [1.0]}), tmp_path / "result.json")
    with running(order, tmp_path) as child:
        deadline_s = time.monotonic() + PATIENCE_S
        while child.progress is None or not child.progress.share:
            assert child.wait(0.05) is None, child.last_words()
            assert time.monotonic() < deadline_s
        assert child.progress.phase == "running policies"
        assert 0 < child.progress.share < 1


PARENT = """
import sys
from pathlib import Path
import msgspec
from controlplane.lab.child.order import Order
from controlplane.lab.child_process import ChildProcess
child = ChildProcess(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Order), Path(sys.argv[2]))
print(child.pid, flush=True)
child.wait(600)
"""


def test_a_child_never_outlives_its_parent(ask: Ask, tmp_path: Path) -> None:
    order = tmp_path / "the-order.json"
    order.write_bytes(msgspec.json.encode(order_of(ask(**LONG), tmp_path / "result.json")))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(order), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    parent.kill()
    parent.wait(PATIENCE_S)
    parent.stdout.close()
    watcher = Thread(target=_until, args=(lambda: gone(group),), daemon=True)
    watcher.start()
    watcher.join(PATIENCE_S)
    assert gone(group)


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.02)


def test_a_broken_trace_names_its_line(ask: Ask, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 8, "output_length": 1, "hash_ids": []}\n{}\n')
    order = msgspec.structs.replace(
        order_of(ask(), tmp_path / "result.json"), trace=TraceFile(path=str(trace), name="mine.jsonl")
    )
    with running(order, tmp_path) as child:
        assert child.wait(PATIENCE_S) == 3
        assert child.fault is not None
        assert child.fault.line == 2
