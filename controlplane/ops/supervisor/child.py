"""One child process: started in a session of its own, its lines read, ended for certain."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.ops.supervisor.readiness import AtOnce, Readiness

_LAUNCH = Path(__file__).with_name("launch.py")
_LAST_LINES = 12
_LAST_WORDS_S = 2.0
"""How long lines are read on after the process has ended (a grandchild may hold the pipe)."""
_LINE_LIMIT = 64 * 1024
Sink = Callable[[str, str], None]
"""Takes the name of a child and a line that it wrote."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, and how long it may take to begin and to end (seconds)."""

    name: str
    arguments: tuple[str, ...]
    readiness: Callable[[], Readiness] = AtOnce
    environment: Mapping[str, str] = field(default_factory=dict)
    ready_within_s: float = 90.0
    stop_within_s: float = 8.0


class Child:
    """One run of a spec; a restart is another one."""

    def __init__(self, spec: ChildSpec, sink: Sink) -> None:
        self.spec = spec
        self.readiness = spec.readiness()
        self.last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._sink = sink
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running.pid

    async def start(self) -> None:
        """Start the process."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", "-E", str(_LAUNCH), str(os.getpid())),
            *self.spec.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.spec.environment},
            start_new_session=True,
            limit=_LINE_LIMIT,
        )
        self._reader = asyncio.create_task(self._read(), name=f"lines of {self.spec.name}")

    async def wait(self) -> int:
        """Return the exit status once the process has ended and nothing of its group is left."""
        status = await self._running.wait()
        if self._reader is not None and not self._reader.done():
            self._signal(signal.SIGKILL)
            await asyncio.wait({self._reader}, timeout=_LAST_WORDS_S)
        return status

    async def stop(self) -> None:
        """End the process: asked first, and killed when it does not obey in time."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.spec.stop_within_s):
                    await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End the process and its whole group at once."""
        if self._process is not None:
            self.hurry()
            await self.wait()
            if self._reader is not None:
                self._reader.cancel()

    def hurry(self) -> None:
        """Kill the whole group, and wait for nothing."""
        if self._process is not None:
            self._signal(signal.SIGKILL)

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError(f"{self.spec.name} was not started")
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running.pid, number)

    async def _read(self) -> None:
        stream = self._running.stdout
        if stream is None:
            return
        while True:
            try:
                raw = await stream.readline()
            except ValueError:  # a line beyond the limit: dropped, like everything nobody could read
                continue
            if not raw:
                return
            line = raw.decode(errors="replace").rstrip()
            self.last_lines.append(line)
            self.readiness.observe(line)
            self._sink(self.spec.name, line)
