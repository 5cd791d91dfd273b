"""The supervisor starts children in order, brings back what dies, and leaves nothing behind."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from controlplane.ops.supervisor.child import Child
from controlplane.ops.supervisor.journal import Journal
from controlplane.ops.supervisor.readiness import AtOnce
from controlplane.ops.supervisor.restarts import RestartPolicy, Restarts
from controlplane.ops.supervisor.supervisor import Step, Supervisor
from tests.controlplane.ops.children import READY, deaf, dying, program, sleeper
from tests.patience import PATIENCE_S

QUICK = RestartPolicy(first_s=0.01, most_s=0.05, healthy_after_s=60, limit=3)


class Run:
    """A supervisor at work, and what it wrote."""

    def __init__(self, folder: Path, steps: Sequence[Step], policy: RestartPolicy = QUICK) -> None:
        self.console = io.StringIO()
        self.journal = Journal(folder, self.console)
        self.supervisor = Supervisor(self.journal, policy)
        self.task = asyncio.create_task(self.supervisor.run(steps))

    async def running(self) -> None:
        """Wait until every step is done."""
        async with asyncio.timeout(PATIENCE_S):
            await self.supervisor.running.wait()

    async def result(self) -> int:
        """Wait for the end."""
        return await asyncio.wait_for(self.task, PATIENCE_S)

    @property
    def said(self) -> str:
        """Everything on the console."""
        return self.console.getvalue()


@asynccontextmanager
async def supervised(folder: Path, *steps: Step) -> AsyncIterator[Run]:
    """Run steps until the block ends."""
    run = Run(folder, steps)
    try:
        yield run
    finally:
        run.supervisor.stop()
        await asyncio.wait({run.task}, timeout=PATIENCE_S)
        run.journal.close()


def alive(pid: int) -> bool:
    """Return whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(*pids: int) -> None:
    """Wait until processes have ended."""
    async with asyncio.timeout(PATIENCE_S):
        while any(alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


async def test_steps_wait_for_each_other(tmp_path: Path) -> None:
    order: list[str] = []

    async def note() -> None:
        order.append("then")

    first = program("first", f"import time; print({READY!r}, flush=True); time.sleep(600)")
    async with supervised(tmp_path, Step((first,), note), Step((sleeper("second"),))) as run:
        await run.running()
        assert order == ["then"]
        assert run.said.index("first is ready") < run.said.index("second is ready")
        pids = run.supervisor.pids()
        assert set(pids) == {"first", "second"}
        run.supervisor.stop()
        assert await run.result() == 0
        await gone(*pids.values())


async def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    async with supervised(tmp_path, Step((sleeper(),))) as run:
        await run.running()
        first = run.supervisor.pids()["sleeper"]
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            while run.said.count("sleeper is ready") < 2:
                await asyncio.sleep(0.01)
        assert run.supervisor.pids()["sleeper"] != first
        assert "sleeper was killed by SIGKILL; starting it again in 0.01 s" in run.said


async def test_a_child_that_keeps_dying_ends_everything_with_its_last_words(tmp_path: Path) -> None:
    async with supervised(tmp_path, Step((sleeper(),)), Step((dying(),))) as run:
        assert await run.result() == 1
        assert "dying ended with status 3, 3 times in a row. It wrote last:\n    out of luck" in run.said
        assert str(tmp_path / "dying.log") in run.said
        await gone(run.supervisor.pids()["sleeper"])


async def test_a_child_that_does_not_get_ready_is_given_up(tmp_path: Path) -> None:
    mute = program("mute", "import time; time.sleep(600)", ready_within_s=0.05)
    async with supervised(tmp_path, Step((mute,))) as run:
        assert await run.result() == 1
        assert "mute was not ready within 0.05 s, 3 times in a row" in run.said


async def test_who_does_not_listen_is_killed_with_all_its_offspring(tmp_path: Path) -> None:
    async with supervised(tmp_path, Step((deaf(),))) as run:
        await run.running()
        outer = run.supervisor.pids()["deaf"]
        inner = int((tmp_path / "deaf.log").read_text().partition("inner ")[2].split()[0])
        assert alive(inner)
        run.supervisor.stop()
        assert await run.result() == 0
        await gone(outer, inner)


async def test_what_follows_a_step_may_fail_and_ends_everything(tmp_path: Path) -> None:
    async def fail() -> None:
        raise OSError("no such luck")

    run = Run(tmp_path, [Step((sleeper(),), fail)])
    with pytest.raises(OSError, match="no such luck"):
        await run.result()
    await gone(run.supervisor.pids()["sleeper"])
    run.journal.close()


async def test_warnings_reach_the_console_and_everything_the_file(tmp_path: Path) -> None:
    source = f"print('quiet'); print('WARNING loud'); print({READY!r}, flush=True); import time; time.sleep(600)"
    async with supervised(tmp_path, Step((program("talker", source),))) as run:
        await run.running()
        assert "talker | WARNING loud" in run.said
        assert "quiet" not in run.said
        assert "quiet" in run.journal.path("talker").read_text()


SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from controlplane.ops.supervisor.journal import Journal
from controlplane.ops.supervisor.supervisor import Step, Supervisor
from tests.controlplane.ops.children import deaf, sleeper

async def main():
    supervisor = Supervisor(Journal(Path(sys.argv[1])))
    work = asyncio.create_task(supervisor.run([Step((sleeper(), deaf()))]))
    await supervisor.running.wait()
    print(*supervisor.pids().values(), flush=True)
    return await work

sys.exit(asyncio.run(main()))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_nothing_is_left_however_the_supervisor_ends(tmp_path: Path, number: signal.Signals) -> None:
    if number is signal.SIGKILL and not sys.platform.startswith("linux"):
        pytest.skip("only Linux ends children with their parent")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", dedent(SUPERVISOR), str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pids = [int(word) for word in (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).split()]
    assert all(alive(pid) for pid in pids)
    process.send_signal(number)
    status = await asyncio.wait_for(process.wait(), PATIENCE_S)
    assert status == (-signal.SIGKILL if number is signal.SIGKILL else 0)
    await gone(*pids)
    inner = int((tmp_path / "deaf.log").read_text().partition("inner ")[2].split()[0])
    if number is signal.SIGKILL:
        os.kill(inner, signal.SIGKILL)  # the system ends children with their parent, but not theirs
    await gone(inner)


async def test_a_line_without_end_does_not_stop_the_reading(tmp_path: Path) -> None:
    source = f"print('x' * 200_000); print({READY!r}, flush=True); import time; time.sleep(600)"
    async with supervised(tmp_path, Step((program("long", source),))) as run:
        await run.running()


async def test_a_child_that_was_not_started_can_be_stopped() -> None:
    await Child(program("idle", "", AtOnce), lambda *_: None).stop()


def test_delays_double_and_a_healthy_run_begins_the_count_again() -> None:
    restarts = Restarts(RestartPolicy(first_s=1, most_s=3, healthy_after_s=10, limit=5))
    assert [restarts.next_delay_s(0) for _ in range(3)] == [1, 2, 3]
    assert restarts.next_delay_s(11) == 1
    assert [restarts.next_delay_s(0) for _ in range(4)] == [2, 3, 3, None]
