"""The last minutes of all workers, from the segments that they record: one trace, in order of arrival.

A folder holds ``WORKER.MILLISECONDS.jsonl`` files, each a recording; the number is the Unix time at which the segment
began. Workers that share the control plane's prefix seed hash alike, so their blocks can be compared. A line that is
being written is left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from router.sim.errors import TraceError
from router.sim.traces.held_prefixes import held_at_start
from router.sim.traces.record import Trace
from router.sim.traces.recording import Outcome, RecordedRequest, RecordingHeader, decode_line, request_of, seen_of

SUFFIX = ".jsonl"
_NAME = re.compile(r"(?P<worker>.+)\.(?P<ms>\d{13,14})\.jsonl")
_SAFE = re.compile(r"[^A-Za-z0-9._-]")


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are wanted: those that arrived from ``since_unix_s`` on, the newest ``most`` of them."""

    since_unix_s: float
    most: int


def segment_name(worker: str, unix_s: float) -> str:
    """Return the name of a segment that begins now."""
    return f"{_SAFE.sub('_', worker)}.{round(unix_s * 1000)}{SUFFIX}"


def segments_of(folder: Path, worker: str) -> list[Path]:
    """Return the segments of one worker, oldest first."""
    name = _SAFE.sub("_", worker)
    return [path for path in segments(folder) if (found := _NAME.fullmatch(path.name)) and found["worker"] == name]


def segments(folder: Path) -> list[Path]:
    """Return all segments, oldest first."""
    if not folder.is_dir():
        return []
    found = [(int(match["ms"]), path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def load_window(folder: Path, window: Window) -> Trace:
    """Read what arrived in a window; requests that were refused are left out, they never reached an engine.

    :raises TraceError: when nothing did, or workers recorded blocks of different sizes.
    """
    sizes: set[int] = set()
    arrived: list[tuple[float, RecordedRequest]] = []
    for path in segments(folder):
        for unix_s, row, block_tokens in _read(path, window.since_unix_s):
            sizes.add(block_tokens)
            arrived.append((unix_s, row))
    if not arrived:
        raise TraceError(folder.name, None, "no router worker has recorded a request in that time")
    if len(sizes) > 1:
        raise TraceError(folder.name, None, "the router workers recorded blocks of different sizes")
    arrived.sort(key=lambda one: one[0])
    return _trace(arrived[-window.most :], sizes.pop())


def _trace(arrived: list[tuple[float, RecordedRequest]], block_tokens: int) -> Trace:
    begun_s = arrived[0][0]
    span_s = arrived[-1][0] - begun_s
    return Trace(
        name="own traffic",
        format="recording",
        block_tokens=block_tokens,
        requests=tuple(
            msgspec.structs.replace(request_of(row, block_tokens), arrival_s=unix_s - begun_s)
            for unix_s, row in arrived
        ),
        provenance=f"recorded by router workers over {span_s:.0f} s; blocks of about {block_tokens} tokens",
        held=held_at_start(seen for _, row in arrived if (seen := seen_of(row)) is not None),
    )


def _read(path: Path, since_unix_s: float) -> Iterator[tuple[float, RecordedRequest, int]]:
    """Yield when a request arrived, the request, and the tokens of a block; nothing of a segment that is older."""
    try:
        if path.stat().st_mtime < since_unix_s:
            return
        lines = path.read_bytes().split(b"\n")[:-1]  # what has no end yet is being written
    except FileNotFoundError:
        return  # it was the oldest, and is gone in this moment
    if not lines:
        return
    header = decode_line(path, 1, lines[0], RecordingHeader)
    for number, line in enumerate(lines[1:], start=2):
        row = decode_line(path, number, line, RecordedRequest)
        unix_s = header.started_unix_s + row.arrival_s
        if unix_s >= since_unix_s and row.outcome is not Outcome.REFUSED:
            yield unix_s, row, header.block_tokens
