"""Work in processes of its own: in order, with progress, failing as one, and never outliving who asked for it."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from router.sim.errors import ScenarioError
from router.sim.parallel import PERMILLE, Note, Work, do_all

SLEEPERS = """
import os, sys, time
from router.sim.parallel import Work, do_all
from tests.router.sim.test_parallel import say_who_and_wait
if __name__ == "__main__":
    do_all(Work(say_who_and_wait, None, [1, 2]), processes=2)
"""


def double(shared: int, item: int, note: Note) -> int:
    note(PERMILLE)
    return shared * item


def refuse_two(shared: int, item: int, note: Note) -> int:
    if item == 2:
        raise ScenarioError("two is too many")
    return item


def say_who_and_wait(shared: None, item: int, note: Note) -> None:
    print(os.getpid(), flush=True)
    time.sleep(600)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_items(processes: int) -> None:
    seen: list[Sequence[int]] = []
    work = Work(double, 10, [3, 1, 2])
    assert do_all(work, processes=processes, on_progress=lambda done: seen.append(list(done))) == [30, 10, 20]
    assert seen[-1] == [PERMILLE] * 3


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_failure_is_raised(processes: int) -> None:
    with pytest.raises(ScenarioError, match="two is too many"):
        do_all(Work(refuse_two, 0, [1, 2, 3]), processes=processes)


def test_workers_end_with_the_process_that_asked_for_them() -> None:
    asker = subprocess.Popen([sys.executable, "-c", SLEEPERS], stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    workers = [asker.stdout.readline() for _ in range(2)]
    asker.kill()
    asker.wait()
    assert all(workers)
    assert asker.stdout.read() == "", "the pipe ends with the last worker, which holds it as well"
    asker.stdout.close()
