"""What reads rows of the laboratory."""

from collections import Counter
from uuid import UUID

import msgspec
from django.db.models import QuerySet

from controlplane.errors import Conflict, NotFound
from controlplane.fleet import selectors as fleet
from controlplane.lab.child.order import Member
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation, SimulationResult, Trace
from router.core.hardware_profiles import DEFAULT_PROFILE, HARDWARE_PROFILES
from router.core.instance import ROUTABLE_STATES
from router.sim.report.comparison import Comparison


def simulations() -> QuerySet[Simulation]:
    """Return all simulations, newest first."""
    return Simulation.objects.all()


def simulation(simulation_id: UUID | str) -> Simulation:
    """Return one simulation.

    :raises NotFound: when there is none.
    """
    found = Simulation.objects.filter(pk=simulation_id).first()
    if found is None:
        raise NotFound("There is no such simulation.")
    return found


def comparison(simulation_id: UUID | str) -> Comparison:
    """Return what came out of a simulation.

    :raises NotFound: when there is no such simulation.
    :raises Conflict: when it has no result.
    """
    found = SimulationResult.objects.filter(simulation__pk=simulation_id).first()
    if found is None:
        state = simulation(simulation_id).state
        raise Conflict(f"There is no result: the simulation is {state}.", state=state)
    return msgspec.convert(found.comparison, type=Comparison)


def is_queued() -> bool:
    """Return whether a simulation waits."""
    return Simulation.objects.filter(state=State.QUEUED).exists()


def waiting_before(one: Simulation) -> int:
    """Return how many simulations are run before a queued one."""
    return Simulation.objects.filter(state=State.QUEUED, created_at__lt=one.created_at).count()


def traces() -> QuerySet[Trace]:
    """Return all traces, newest first."""
    return Trace.objects.all()


def trace(trace_id: UUID | str) -> Trace:
    """Return one trace.

    :raises NotFound: when there is none.
    """
    found = Trace.objects.filter(pk=trace_id).first()
    if found is None:
        raise NotFound("There is no such trace.")
    return found


def routable_members() -> tuple[Member, ...]:
    """Return the instances that take requests now; those of unknown hardware count as the default profile."""
    found = fleet.living().filter(state__in=ROUTABLE_STATES).order_by("name").values_list("name", "hardware")
    return tuple(
        Member(name, hardware if hardware in HARDWARE_PROFILES else DEFAULT_PROFILE) for name, hardware in found
    )


def last_preview(policy: str) -> Simulation | None:
    """Return the newest simulation that was asked for to preview a policy."""
    return Simulation.objects.filter(preview_of=policy).first()


def registered_fleet() -> str | None:
    """Return the registered instances as ``PROFILE:COUNT,...``; None where there are none.

    Instances whose hardware is not known count as the default profile.
    """
    kinds = Counter(
        hardware if hardware in HARDWARE_PROFILES else DEFAULT_PROFILE
        for hardware in fleet.living().values_list("hardware", flat=True)
    )
    return ",".join(f"{kind}:{count}" for kind, count in sorted(kinds.items())) or None
