"""``python -m controlplane.lab.child ORDER``: carry out one order."""

import sys
import time
from pathlib import Path

import msgspec

from controlplane.lab.child.comparing import compare
from controlplane.lab.child.guard import guard
from controlplane.lab.child.order import Fault, Inspection, InspectionOrder, Message, Order, Progress
from controlplane.lab.child.traffic import named_trace
from router.core.errors import CoreError
from router.sim.errors import SimError, TraceError
from router.sim.traces.statistics import statistics_of

TELL_EVERY_S = 0.5
"""Progress is told no more often than this, so that it is written at most twice a second."""
FAULTY = 3
"""Exit status when the order cannot be carried out; a fault was told before."""


class Teller:
    """Tells progress on standard output, now and then."""

    def __init__(self) -> None:
        self._told_s = 0.0
        self._phase = ""

    def __call__(self, progress: Progress) -> None:
        """Tell, unless something of the same phase was told just now."""
        now_s = time.monotonic()
        if progress.phase == self._phase and now_s - self._told_s < TELL_EVERY_S:
            return
        self._told_s, self._phase = now_s, progress.phase
        _say(progress)


def main(order_path: str) -> int:
    """Carry out one order; 0 when its result is there, 3 when it cannot be carried out."""
    order = msgspec.json.decode(Path(order_path).read_bytes(), type=Order)
    guard(order.memory_bytes)
    try:
        result = _inspect(order) if isinstance(order, InspectionOrder) else compare(order, Teller())
    except TraceError as error:
        _say(Fault(reason=error.reason, line=error.line))
        return FAULTY
    except (SimError, CoreError) as error:
        _say(Fault(reason=str(error)))
        return FAULTY
    except MemoryError:
        _say(Fault(reason=f"It needs more than the {order.memory_bytes >> 20} MiB of memory that a run may have."))
        return FAULTY
    Path(order.result_path).write_bytes(msgspec.json.encode(result))
    return 0


def _inspect(order: InspectionOrder) -> Inspection:
    trace = named_trace(order.trace)
    return Inspection(format=trace.format, hashed=trace.hashed, statistics=statistics_of(trace))


def _say(message: Message) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
