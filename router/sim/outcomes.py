"""What happened to every request of a run, as columns."""

from array import array
from enum import IntEnum

import msgspec


class Status(IntEnum):
    """How a request ended."""

    PENDING = 0
    DONE = 1
    REFUSED = 2
    """No instance could take it: larger than every KV cache, or no candidate left."""
    FAILED = 3
    """Its engine restarted after it had begun to answer."""


class Outcomes(msgspec.Struct):
    """Columns by request, in the order of the trace. Times in picoseconds since the start, counts in tokens."""

    status: "array[int]"
    instance: "array[int]"
    """Position of the instance in the scenario's fleet."""
    arrival_ps: "array[int]"
    first_ps: "array[int]"
    end_ps: "array[int]"
    prompt_tokens: "array[int]"
    output_tokens: "array[int]"
    cached_tokens: "array[int]"
    """Prompt tokens that the engine had in its cache."""
    predicted_tokens: "array[int]"
    """Prompt tokens that the router expected there."""
    elsewhere_tokens: "array[int]"
    """Prompt tokens computed although the router expected them at another instance."""
    prefilled_tokens: "array[int]"
    recomputed_tokens: "array[int]"
    """Tokens computed again after preemptions."""
    preemptions: int = 0
    decisions: int = 0
    retried: int = 0
    end_time_ps: int = 0

    @classmethod
    def blank(cls, requests: int) -> "Outcomes":
        """Return columns of zeros."""
        names = cls.__struct_fields__[:12]
        return cls(*(array("q", bytes(8 * requests)) for _ in names))

    def __len__(self) -> int:
        return len(self.status)
