"""A child process: started, watched, and ended with everything that it started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import msgspec

from controlplane.lab.child.order import Fault, Message, Order, Progress

_ROOT = Path(__file__).resolve().parents[2]
_LAST_WORDS = 2000


class ChildProcess:
    """One order being carried out. ``progress`` and ``fault`` are what the child said last."""

    def __init__(self, order: Order, folder: Path) -> None:
        path = folder / "order.json"
        path.write_bytes(msgspec.json.encode(order))
        self.progress: Progress | None = None
        self.fault: Fault | None = None
        self._errors = (folder / "errors.txt").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "controlplane.lab.child", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=_ROOT,
            env=_environment(),
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True, name="lab child")
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's id, which is also that of its group."""
        return self._process.pid

    def wait(self, limit_s: float) -> int | None:
        """Return the exit status, or None when it still runs after so long."""
        try:
            status = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(limit_s)
        return status

    def end(self) -> None:
        """End it, and what it started, whether it has ended or not."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()

    def last_words(self) -> str:
        """Return the end of what it wrote to standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_WORDS))
        return self._errors.read().decode("utf-8", "replace").strip()

    def _read(self) -> None:
        decoder = msgspec.json.Decoder(Message)
        for line in self._process.stdout or ():
            message = decoder.decode(line)
            if isinstance(message, Fault):
                self.fault = message
            else:
                self.progress = message


@contextmanager
def running(order: Order, folder: Path) -> Iterator[ChildProcess]:
    """Run a child; however the block is left, the child is gone afterwards."""
    child = ChildProcess(order, folder)
    try:
        yield child
    finally:
        child.end()


def _environment() -> dict[str, str]:
    """Keep numeric libraries from starting a thread a core."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
