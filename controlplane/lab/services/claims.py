"""Who runs a simulation. A worker claims it, says again and again that it still has it, and settles it.

Every step but the first is a conditional change: it happens only while the row is running and carries the worker's own
claim. A worker whose step changes nothing has lost the run (it was cancelled, or given to another) and stops.
"""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from controlplane.lab.child.order import Progress
from controlplane.lab.lifecycle import ACTIVE, Event, State, next_state
from controlplane.lab.models import Simulation, SimulationResult

SILENT_FOR = timedelta(seconds=15)
"""A worker that has said nothing for so long is gone."""
MOST_ATTEMPTS = 2
_MOST_REASON = 1000


@transaction.atomic
def claim_next(concurrent: int) -> Simulation | None:
    """Claim the oldest queued simulation, unless none is queued or as many run as may."""
    active = list(Simulation.objects.select_for_update().filter(state__in=ACTIVE).order_by("created_at", "pk"))
    queued = [one for one in active if one.life is State.QUEUED]
    if not queued or len(active) - len(queued) >= concurrent:
        return None
    chosen, now = queued[0], timezone.now()
    chosen.state = next_state(chosen.life, Event.START)
    chosen.claim = uuid4()
    chosen.attempts += 1
    chosen.phase, chosen.progress, chosen.pieces = "starting", 0.0, []
    chosen.started_at = chosen.seen_at = now
    chosen.save()
    return chosen


def still_mine(simulation: Simulation, progress: Progress | None) -> bool:
    """Say how far a claimed simulation is; return whether it is still the caller's."""
    changes: dict[str, Any] = {"seen_at": timezone.now()}
    if progress is not None:
        changes |= {
            "phase": progress.phase,
            "progress": progress.share,
            "pieces": [{"name": piece.name, "permille": piece.permille} for piece in progress.pieces],
        }
    return bool(_mine(simulation).update(**changes))


@transaction.atomic
def finish(simulation: Simulation, comparison: dict[str, Any]) -> bool:
    """Keep the result; return whether the simulation was still the caller's."""
    if not _settle(simulation, Event.FINISH, "", progress=1.0, pieces=[]):
        return False
    SimulationResult.objects.create(simulation=simulation, comparison=comparison)
    return True


def fail(simulation: Simulation, reason: str) -> bool:
    """Say why it failed; return whether the simulation was still the caller's."""
    return _settle(simulation, Event.FAIL, reason)


def give_back(simulation: Simulation) -> bool:
    """Queue a simulation again whose worker is being stopped; return whether it was still the caller's."""
    return bool(
        _mine(simulation).update(
            state=next_state(State.RUNNING, Event.RELEASE), claim=None, attempts=F("attempts") - 1, phase="", pieces=[]
        )
    )


@transaction.atomic
def recover_lost() -> list[Simulation]:
    """Queue again what silent workers had, or give it up when that has happened before; return what was changed."""
    silent = Simulation.objects.select_for_update().filter(state=State.RUNNING, seen_at__lt=timezone.now() - SILENT_FOR)
    return [_recovered(simulation) for simulation in silent]


def _recovered(simulation: Simulation) -> Simulation:
    event = Event.LOSE if simulation.attempts < MOST_ATTEMPTS else Event.GIVE_UP
    simulation.state = next_state(simulation.life, event)
    simulation.claim = None
    simulation.phase, simulation.progress, simulation.pieces = "", 0.0, []
    if event is Event.LOSE:
        simulation.reason = "The task worker that ran it died; it begins again."
    else:
        simulation.reason = f"The task worker that ran it died, {simulation.attempts} times. Is there enough memory?"
        simulation.ended_at = timezone.now()
    simulation.save()
    return simulation


def _settle(simulation: Simulation, event: Event, reason: str, **also: object) -> bool:
    state = next_state(State.RUNNING, event)
    return bool(
        _mine(simulation).update(
            state=state, reason=reason[:_MOST_REASON], claim=None, ended_at=timezone.now(), phase="", **also
        )
    )


def _mine(simulation: Simulation) -> Any:
    return Simulation.objects.filter(pk=simulation.pk, state=State.RUNNING, claim=simulation.claim)
