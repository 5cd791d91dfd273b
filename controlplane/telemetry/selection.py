"""Which part of the traffic somebody looks at.

A workload chooses whose requests are counted. A model chooses the instances: those that serve it, and where no workload
is chosen the requests at them are what is counted. Routers do not count by both at once, so with both the numbers are
those of the workload on all its models.
"""

from typing import Self

import msgspec

LONGEST_NAME = 200


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Names; an empty one means all."""

    model: str = ""
    workload: str = ""

    @classmethod
    def of(cls, *, model: str | None, workload: str | None) -> Self:
        """Return what was asked for; names are cut to a length that any real one has."""
        return cls(model=(model or "")[:LONGEST_NAME], workload=(workload or "")[:LONGEST_NAME])


EVERYTHING = Selection()
