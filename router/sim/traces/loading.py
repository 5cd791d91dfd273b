"""Opening a trace whatever its format: a literal table of loaders, and how each format is recognised."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from router.sim.errors import TraceError
from router.sim.traces.azure import COLUMNS, load_azure
from router.sim.traces.bailian import load_bailian
from router.sim.traces.claudecode import load_claudecode
from router.sim.traces.lines import read_lines
from router.sim.traces.mooncake import load_mooncake
from router.sim.traces.record import Trace
from router.sim.traces.recording import load_recording


class TraceFormat(StrEnum):
    """The formats that can be read."""

    MOONCAKE = "mooncake"
    BAILIAN = "bailian"
    CLAUDECODE = "claudecode"
    AZURE = "azure"
    RECORDING = "recording"


LOADERS: Mapping[TraceFormat, Callable[[Path], Trace]] = {
    TraceFormat.MOONCAKE: load_mooncake,
    TraceFormat.BAILIAN: load_bailian,
    TraceFormat.CLAUDECODE: load_claudecode,
    TraceFormat.AZURE: load_azure,
    TraceFormat.RECORDING: load_recording,
}

_KEYS: tuple[tuple[frozenset[str], TraceFormat], ...] = (
    (frozenset({"pointsman_recording"}), TraceFormat.RECORDING),
    (frozenset({"chat_id", "hash_ids"}), TraceFormat.BAILIAN),
    (frozenset({"trace_id", "hash_ids"}), TraceFormat.CLAUDECODE),
    (frozenset({"timestamp", "hash_ids"}), TraceFormat.MOONCAKE),
    (frozenset(COLUMNS), TraceFormat.AZURE),
)


def load_trace(path: Path, trace_format: TraceFormat | None = None) -> Trace:
    """Read a trace; without a format it is recognised by the first line.

    :raises TraceError: when it cannot be read or recognised, naming file and line.
    """
    trace = LOADERS[trace_format or detect_format(path)](path)
    if not trace.requests:
        raise TraceError(path.name, None, "there is no request in it")
    return trace


def detect_format(path: Path) -> TraceFormat:
    """Recognise a format by the names in the first line.

    :raises TraceError: when it is none that is known.
    """
    number, line = next(read_lines(path), (0, b""))
    if not number:
        raise TraceError(path.name, None, "the file is empty")
    if line.decode("utf-8", "replace").startswith(COLUMNS[0]):
        return TraceFormat.AZURE
    try:
        keys = set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(path.name, number, f"neither CSV of Azure nor a JSON object: {error}") from error
    for wanted, trace_format in _KEYS:
        if wanted <= keys:
            return trace_format
    raise TraceError(path.name, number, f"no known trace format has the fields {', '.join(sorted(keys))}")
