"""A worker as a process of its own, and what the operating system says it has used. Linux only."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from router.config import ConfigDocument, dump_config

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
READY_S = 120.0
"""After so long a worker that does not listen is taken to never do."""


class WorkerProcess(msgspec.Struct, frozen=True):
    """A running worker."""

    pid: int
    port: int

    def cpu_s(self) -> float:
        """Return user and system time so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mb(self) -> float:
        """Return resident memory in megabytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def worker_process(document: ConfigDocument, port: int, folder: Path) -> Iterator[WorkerProcess]:
    """Run a worker on core 0, and this process on the others, for the length of a block.

    :raises RuntimeError: when the worker does not come up.
    """
    config = folder / "config.json"
    config.write_bytes(dump_config(document))
    command = [sys.executable, "-m", "router.cli", "worker", "--listen", f"127.0.0.1:{port}", "--config", str(config)]
    with (folder / "worker.log").open("wb") as log, _cores_apart() as core:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            _await_listening(process, folder / "worker.log")
            yield WorkerProcess(process.pid, port)
        finally:
            process.terminate()
            process.wait(READY_S)


@contextmanager
def _cores_apart() -> Iterator[int | None]:
    """Leave one core to the worker where there are two or more; yield which."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        yield None
        return
    os.sched_setaffinity(0, set(cores[1:]))
    try:
        yield cores[0]
    finally:
        os.sched_setaffinity(0, set(cores))


def _await_listening(process: "subprocess.Popen[bytes]", log: Path) -> None:
    ends_s = time.monotonic() + READY_S
    while b"config_applied" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > ends_s:
            raise RuntimeError(f"the worker did not come up: {log.read_text()[-500:]}")
        time.sleep(0.05)
