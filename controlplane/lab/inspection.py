"""Reading a trace file to its end, in a process with limits: a file from outside may be anything."""

from pathlib import Path
from threading import Lock

import msgspec

from controlplane.errors import Conflict, Invalid
from controlplane.lab.child.order import Inspection, InspectionOrder, TraceFile
from controlplane.lab.child_process import running
from controlplane.lab.limits import INSPECTION_LIMIT_S, MEMORY_BYTES
from controlplane.lab.storage import scratch

_one_at_a_time = Lock()


def inspect(path: Path, name: str) -> Inspection:
    """Describe a trace file; one is read at a time, so that many at once do not need the memory of many.

    :raises Invalid: when it cannot be read; the message names the line.
    :raises Conflict: when others are read for too long.
    """
    if not _one_at_a_time.acquire(timeout=INSPECTION_LIMIT_S):
        raise Conflict("Other traces are being read; try again in a minute.")
    try:
        return _inspect(path, name)
    finally:
        _one_at_a_time.release()


def _inspect(path: Path, name: str) -> Inspection:
    with scratch("inspection") as folder:
        result_path = Path(folder) / "result.json"
        order = InspectionOrder(
            trace=TraceFile(path=str(path), name=name), result_path=str(result_path), memory_bytes=MEMORY_BYTES
        )
        with running(order, Path(folder)) as child:
            status = child.wait(INSPECTION_LIMIT_S)
            if status == 0:
                return msgspec.json.decode(result_path.read_bytes(), type=Inspection)
            if child.fault is not None:
                where = "" if child.fault.line is None else f"Line {child.fault.line}: "
                raise Invalid({"file": [where + child.fault.reason]})
    why = f"took longer than {INSPECTION_LIMIT_S:g} s" if status is None else "failed"
    raise Invalid({"file": [f"Reading it {why}; is it a trace?"]})
