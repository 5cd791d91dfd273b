"""Records the last minutes of what is served, for ever: segments of bounded size, the oldest of which go.

Every segment is a recording of its own (:mod:`router.sim.traces.recording`). All have the same beginning, that of the
worker, so that arrivals are on one clock. What is buffered reaches the file within a second. A disk that is full
ends the recording, never a request.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
import structlog

from router.proxy.intake import Intake
from router.proxy.ledger import Ended
from router.proxy.recorder import Recorder
from router.proxy.usage import Usage
from router.sim.traces.segments import segment_name, segments_of

_log = structlog.get_logger(__name__)
_BUFFER = 1 << 20
_FLUSH_S = 1.0
_NO_LIMIT = 2**62


class RollingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how large a segment may be, and how many there are at most, the one being written among them."""

    span_s: float = 300.0
    most_bytes: int = 16 << 20
    segments: int = 4


class RollingRecorder:
    """Writes segments of one worker into a folder. ``started_s`` and ``started_unix_s`` are the same moment."""

    def __init__(
        self, folder: Path, worker: str, started_s: float, started_unix_s: float, limits: RollingLimits | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._worker = worker
        self._started_s = started_s
        self._started_unix_s = started_unix_s
        self._limits = RollingLimits() if limits is None else limits
        self._loop = asyncio.get_running_loop()
        self._file: IO[bytes] | None = None
        self._segment: Recorder | None = None
        self._rolled_s = 0.0
        self._flush: asyncio.TimerHandle | None = None
        self._broken = False

    def note(self, intake: Intake, ended: Ended, usage: Usage | None) -> None:
        """Record one request that has ended."""
        if self._broken:
            return
        try:
            self._segment_at(ended.ended_s).note(intake, ended, usage)
        except OSError as error:
            self._give_up(error)
            return
        if self._flush is None:
            self._flush = self._loop.call_later(_FLUSH_S, self._flush_now)

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._segment is not None:
            self._segment.close()
            self._segment = self._file = None

    def _segment_at(self, now_s: float) -> Recorder:
        """Return the segment to write to, a new one where the present one is full."""
        segment, file, limits = self._segment, self._file, self._limits
        if segment is not None and file is not None:
            if now_s - self._rolled_s < limits.span_s and file.tell() < limits.most_bytes:
                return segment
            segment.close()
        for old in segments_of(self._folder, self._worker)[: -(limits.segments - 1) or None]:
            old.unlink(missing_ok=True)
        unix_s = self._started_unix_s + now_s - self._started_s
        self._file = file = (self._folder / segment_name(self._worker, unix_s)).open("wb", _BUFFER)
        self._segment = segment = Recorder(file, self._started_s, self._started_unix_s, _NO_LIMIT)
        self._rolled_s = now_s
        return segment

    def _flush_now(self) -> None:
        self._flush = None
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _log.error("recording_ended", reason=str(error), folder=str(self._folder))
        self._broken = True
        with suppress(OSError):
            self.close()
