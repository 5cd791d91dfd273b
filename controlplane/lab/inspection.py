"""Reading a trace file to its end, in a process with limits: a file from outside may be anything."""

from pathlib import Path

import msgspec

from controlplane.errors import Invalid
from controlplane.lab.child.order import Inspection, InspectionOrder, TraceFile
from controlplane.lab.child_process import running
from controlplane.lab.limits import INSPECTION_LIMIT_S, MEMORY_BYTES
from controlplane.lab.storage import scratch


def inspect(path: Path, name: str) -> Inspection:
    """Describe a trace file.

    :raises Invalid: when it cannot be read; the message names the line.
    """
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
