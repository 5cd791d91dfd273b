"""The newest decision samples, bounded, and findable by request id. Any thread may ask."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice, takewhile
from threading import Lock

from msgspec.structs import replace

from controlplane.telemetry.selection import EVERYTHING, Selection
from router.snapshot import DecisionSample

CAPACITY = 1_000
RETOLD_WITHIN_S = 1.0
"""A worker that tells of a decision again takes its time anew from its clocks; by more than this it is another one."""


def supersedes(sample: DecisionSample, held: DecisionSample) -> bool:
    """Return whether a decision is a later one about the request of another, and not that one told again.

    Several workers may each have one, when a client uses a request id again.
    """
    later_s = sample.time_unix_s - held.time_unix_s
    return later_s > 0 and (later_s > RETOLD_WITHIN_S or replace(sample, time_unix_s=held.time_unix_s) != held)


class DecisionSamples:
    """A memory of decisions, newest last; the oldest go when it is full."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._by_id: OrderedDict[str, DecisionSample] = OrderedDict()
        self._lock = Lock()

    def add(self, sample: DecisionSample) -> None:
        """Keep a sample. A request decided again (a retry, anywhere) is kept with its newest decision.

        A worker without traffic reports its last decision again and again; that keeps its place and its time, and
        takes nothing from a newer one that another worker told of.
        """
        held = self._by_id.get(sample.request_id)
        if held is not None and not supersedes(sample, held):
            return
        with self._lock:
            self._by_id[sample.request_id] = sample
            self._by_id.move_to_end(sample.request_id)
            while len(self._by_id) > self._capacity:
                self._by_id.popitem(last=False)

    def find(self, request_id: str) -> DecisionSample | None:
        """Return the decision of a request, or None if it was not sampled or is gone."""
        return self._by_id.get(request_id)

    def newest(self, selection: Selection = EVERYTHING) -> DecisionSample | None:
        """Return the newest sample of what is selected."""
        with self._lock:
            return next((one for one in reversed(self._by_id.values()) if _is_of(one, selection)), None)

    def recent(self, limit: int) -> Sequence[DecisionSample]:
        """Return up to ``limit`` samples, newest first."""
        with self._lock:
            return list(islice(reversed(self._by_id.values()), limit))

    def since(self, request_id: str) -> int:
        """Return how many samples are newer than that of a request: all of them when it is gone or unknown."""
        with self._lock:
            return sum(1 for _ in takewhile(lambda known: known != request_id, reversed(self._by_id)))


def _is_of(sample: DecisionSample, selection: Selection) -> bool:
    return selection.model in ("", sample.model) and selection.workload in ("", sample.workload)
