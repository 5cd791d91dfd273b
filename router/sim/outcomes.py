"""What happened to every request of a run, as columns."""

from array import array
from enum import IntEnum


class Status(IntEnum):
    """How a request ended."""

    PENDING = 0
    DONE = 1
    REFUSED = 2
    """No instance could take it: larger than every KV cache, or no candidate left."""
    FAILED = 3
    """Its engine restarted after it had begun to answer."""


COLUMNS = (
    "status",
    "instance",
    "arrival_ps",
    "first_ps",
    "end_ps",
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "predicted_tokens",
    "elsewhere_tokens",
    "prefilled_tokens",
    "recomputed_tokens",
)


class Outcomes:
    """Columns by request, in the order of the trace. Times in picoseconds since the start, counts in tokens.

    - ``instance``: position of the instance in the scenario's fleet
    - ``cached_tokens``: of the prompt, in the engine's cache; ``predicted_tokens``: expected there by the router
    - ``elsewhere_tokens``: computed although the router expected them at another instance
    - ``recomputed_tokens``: computed again after preemptions
    """

    __slots__ = (
        *COLUMNS,
        "decisions",
        "end_time_ps",
        "mitigated_requests",
        "mitigations",
        "preemptions",
        "preloads",
        "retried",
    )

    def __init__(self, requests: int) -> None:
        def column() -> "array[int]":
            return array("q", bytes(8 * requests))

        self.status = column()
        self.instance = column()
        self.arrival_ps = column()
        self.first_ps = column()
        self.end_ps = column()
        self.prompt_tokens = column()
        self.output_tokens = column()
        self.cached_tokens = column()
        self.predicted_tokens = column()
        self.elsewhere_tokens = column()
        self.prefilled_tokens = column()
        self.recomputed_tokens = column()
        self.decisions = 0
        self.preemptions = 0
        self.retried = 0
        self.mitigations = 0
        """How often a hotspot mitigation began."""
        self.mitigated_requests = 0
        """Requests that were kept away from the holders of their prefix."""
        self.preloads = 0
        """Prefixes that were sent to instances ahead of users' requests."""
        self.end_time_ps = 0

    def __len__(self) -> int:
        return len(self.status)

    def to_bytes(self) -> bytes:
        """Return every column and total as bytes, to compare two runs."""
        totals = array("q", (self.decisions, self.preemptions, self.retried, self.end_time_ps))
        return b"".join(getattr(self, name).tobytes() for name in COLUMNS) + totals.tobytes()
