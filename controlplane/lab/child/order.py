"""What parent and child say to each other."""

import msgspec

from router.core.policy import Policy
from router.sim.metrics import Slo
from router.sim.scenario import Observation
from router.sim.traces.statistics import TraceStatistics


class GeneratedTrace(msgspec.Struct, frozen=True, tag="generated", kw_only=True):
    """A trace that is drawn; None is the generator's own rate or duration."""

    generator: str
    duration_s: float | None = None
    requests_per_s: float | None = None


class TraceFile(msgspec.Struct, frozen=True, tag="file", kw_only=True):
    """A trace that was recorded; ``name`` is what people know it by."""

    path: str
    name: str


class OwnTraffic(msgspec.Struct, frozen=True, tag="own", kw_only=True):
    """What router workers recorded since a moment, in the segments of a folder."""

    folder: str
    since_unix_s: float


class Member(msgspec.Struct, frozen=True):
    """An instance of the fleet by its own name, and the name of its hardware profile."""

    name: str
    profile: str


class SimulationOrder(msgspec.Struct, frozen=True, tag="simulate", kw_only=True):
    """A comparison to run.

    :param requests: most requests of one run.
    :param rate_scales: rates to run every policy at; with ``sweep`` the rates are found instead.
    :param processes: policies that run at once.
    :param members: the fleet, instead of ``hardware``, where instances have their own names.
    :param placements: also say where each request went, beside the first policy.
    """

    trace: GeneratedTrace | TraceFile | OwnTraffic
    policies: tuple[Policy, ...]
    hardware: str
    requests: int
    rate_scales: tuple[float, ...]
    sweep: bool
    spread: bool
    observation: Observation
    warmup: float
    seed: int
    slo: Slo
    processes: int
    result_path: str
    memory_bytes: int
    """Most that each process may allocate."""
    members: tuple[Member, ...] = ()
    placements: bool = False


class InspectionOrder(msgspec.Struct, frozen=True, tag="inspect", kw_only=True):
    """A trace file to read once and describe."""

    trace: TraceFile
    result_path: str
    memory_bytes: int


Order = SimulationOrder | InspectionOrder


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace file holds."""

    format: str
    hashed: bool
    """Whether prompts carry blocks, without which nothing can hit."""
    statistics: TraceStatistics


class Piece(msgspec.Struct, frozen=True):
    """One part of the work, and how much of it is done."""

    name: str
    permille: int


class Progress(msgspec.Struct, frozen=True, tag="progress", kw_only=True):
    """How far the work is."""

    phase: str
    pieces: tuple[Piece, ...] = ()

    @property
    def share(self) -> float:
        """The share of this phase that is done, 0 to 1."""
        return sum(piece.permille for piece in self.pieces) / (1000 * len(self.pieces)) if self.pieces else 0.0


class Fault(msgspec.Struct, frozen=True, tag="fault", kw_only=True):
    """Why the order cannot be carried out."""

    reason: str
    line: int | None = None
    """Line of the trace file that is at fault."""


Message = Progress | Fault
