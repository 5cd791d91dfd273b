"""Celery without its schedule: what is rung for is done once, and nothing else takes the machine's time.

There is no second try, so whatever rings must wait until somebody listens, and a probe may take as long as it may.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import eventually, running

_COMMAND = ("-m", "celery", "-A", "controlplane.celery", "worker", "--pool", "solo", "--loglevel", "INFO")
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_PROBE_TIMEOUT_S = "60"


@contextmanager
def running_tasks(log: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a worker until the block ends, which begins once tasks are taken."""
    with running([*_COMMAND, *_QUIET], log, **environment, POINTSMAN_PROBE_TIMEOUT_S=_PROBE_TIMEOUT_S):
        eventually(lambda: " ready." in log.read_text(), "tasks are taken")
        yield
