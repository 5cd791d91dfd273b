"""Our own recordings: what a router worker saw, to be replayed or simulated later. Never prompt text.

JSON lines, plain or gzip. The first is the header, every other one a request in order of arrival::

    {"pointsman_recording": 1, "block_tokens": 16, "started_unix_s": 1767225600.0, "model": "…"}
    {"t": 0.25, "in": 1034, "out": 211, "blocks": "<base64>", "workload": "chat", "outcome": "done"}

``t`` is seconds since the header's time; ``in`` and ``out`` are tokens (estimates where the engine sent no usage);
``blocks`` the packed chain hashes of the prompt, 8 bytes each, whose key lives only in the worker: they tell equal
prefixes apart within one recording and nothing else. ``ttft_s``, ``e2e_s``, ``hit`` (cached tokens) and ``instance``
may be added.
"""

from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, TypeVar

import msgspec

from router.core.request import DEFAULT_WORKLOAD
from router.sim.errors import TraceError
from router.sim.traces.held_prefixes import SeenRequest, held_at_start
from router.sim.traces.lines import read_lines
from router.sim.traces.record import BLOCK_BYTES, Trace, TraceRequest

VERSION = 1
Row = TypeVar("Row")


class Outcome(StrEnum):
    """How a recorded request ended."""

    DONE = "done"
    ERROR = "error"
    DISCONNECTED = "disconnected"
    REFUSED = "refused"


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. ``block_tokens`` is an estimate where the worker hashes bytes."""

    pointsman_recording: int = VERSION
    block_tokens: Annotated[int, msgspec.Meta(ge=1)]
    started_unix_s: float = 0.0
    model: str = ""


class RecordedRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"arrival_s": "t", "prompt_tokens": "in", "output_tokens": "out", "hit_tokens": "hit"},
):
    """One request."""

    arrival_s: Annotated[float, msgspec.Meta(ge=0)]
    prompt_tokens: Annotated[int, msgspec.Meta(ge=1)]
    output_tokens: Annotated[int, msgspec.Meta(ge=0)]
    blocks: bytes = b""
    workload: str = DEFAULT_WORKLOAD
    outcome: Outcome = Outcome.DONE
    session: str | None = None
    instance: str | None = None
    hit_tokens: int | None = None
    ttft_s: float | None = None
    e2e_s: float | None = None


class RecordingWriter:
    """Writes a recording line by line to an open binary file, which stays the caller's to close."""

    def __init__(self, file: IO[bytes], header: RecordingHeader) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder()
        self._write(header)

    def write(self, request: RecordedRequest) -> None:
        """Append one request.

        :raises ValueError: when its blocks are not whole hashes.
        """
        if len(request.blocks) % BLOCK_BYTES:
            raise ValueError(f"{len(request.blocks)} bytes of blocks are not whole 8-byte hashes")
        self._write(request)

    def _write(self, line: RecordingHeader | RecordedRequest) -> None:
        self._file.write(self._encoder.encode(line) + b"\n")


def load_recording(path: Path) -> Trace:
    """Read a recording; requests that were refused are left out, they never reached an engine.

    :raises TraceError: naming the first faulty line.
    """
    lines = read_lines(path)
    number, first = next(lines, (1, b"{}"))
    header = decode_line(path, number, first, RecordingHeader)
    if header.pointsman_recording != VERSION:
        raise TraceError(path.name, number, f"version {header.pointsman_recording} is not {VERSION}, the one read here")
    rows: list[RecordedRequest] = []
    for number, line in lines:
        row = decode_line(path, number, line, RecordedRequest)
        if len(row.blocks) % BLOCK_BYTES:
            raise TraceError(path.name, number, "blocks are not whole 8-byte hashes")
        if row.outcome is not Outcome.REFUSED:
            rows.append(row)
    rows.sort(key=lambda row: row.arrival_s)
    return Trace(
        name=path.name,
        format="recording",
        block_tokens=header.block_tokens,
        requests=tuple(request_of(row, header.block_tokens) for row in rows),
        provenance=f"recorded by a router worker; blocks of about {header.block_tokens} tokens",
        held=held_at_start(seen for row in rows if (seen := seen_of(row)) is not None),
    )


def request_of(row: RecordedRequest, block_tokens: int) -> TraceRequest:
    """Return a recorded request as one to be replayed."""
    full = row.prompt_tokens // block_tokens
    return TraceRequest(
        arrival_s=row.arrival_s,
        prompt_tokens=row.prompt_tokens,
        output_tokens=max(1, row.output_tokens),
        blocks=row.blocks[: full * BLOCK_BYTES],
        workload=row.workload,
        session=row.session,
        hit_tokens=row.hit_tokens,
    )


def seen_of(row: RecordedRequest) -> SeenRequest | None:
    """Return what an engine said that it held of a recorded request, in whole blocks; None where nothing was said."""
    if row.instance is None or row.hit_tokens is None:
        return None
    blocks = len(row.blocks) // BLOCK_BYTES
    return SeenRequest(row.instance, row.blocks, min(blocks, row.hit_tokens * blocks // row.prompt_tokens))


def decode_line(path: Path, number: int, line: bytes, row_type: type[Row]) -> Row:
    """Read one line of a recording.

    :raises TraceError: naming it, when it is not of that type.
    """
    try:
        return msgspec.json.decode(line, type=row_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(path.name, number, str(error)) from error
