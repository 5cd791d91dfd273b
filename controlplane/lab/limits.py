"""What the laboratory may use, so that a browser cannot take the machine down."""

from dataclasses import dataclass

from django.conf import settings

MOST_POLICIES = 20
MOST_INSTANCES = 256
MOST_RATES = 8
MOST_RUNS = 60
"""Policies times rates."""
MOST_TRACES_BYTES = 2 << 30
"""All trace files together."""
MOST_TEXT_FACTOR = 40
"""A trace that is unpacked may be this many times as large as an upload may be."""
MEMORY_BYTES = 2 << 30
"""Most that a process of a simulation may allocate."""
INSPECTION_LIMIT_S = 60.0
KEPT_SIMULATIONS = 200
"""The oldest ended ones beyond these are forgotten."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that are settings."""

    requests: int
    time_s: float
    concurrent: int
    processes: int
    upload_bytes: int

    @property
    def text_bytes(self) -> int:
        """Most bytes of a trace that is unpacked."""
        return self.upload_bytes * MOST_TEXT_FACTOR


def limits() -> Limits:
    """Return the limits in force."""
    return Limits(
        requests=settings.LAB_REQUESTS,
        time_s=settings.LAB_TIME_LIMIT_S,
        concurrent=settings.LAB_CONCURRENT,
        processes=settings.LAB_PROCESSES,
        upload_bytes=settings.LAB_UPLOAD_MIB << 20,
    )
