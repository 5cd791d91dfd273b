"""Simulations: asked for, cancelled, deleted. Who runs them is :mod:`controlplane.lab.services.claims`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.fleet.doorbell import ring_on_commit
from controlplane.lab.lifecycle import ACTIVE, Event, next_state
from controlplane.lab.limits import limits
from controlplane.lab.models import Simulation, Trace
from controlplane.lab.policy_choice import resolve
from controlplane.lab.simulation_settings import SimulationSettings, parse_settings
from controlplane.lab.task_names import WORK
from router.sim.traces.generator_profiles import GENERATORS

_MOST_QUEUED = 20


@transaction.atomic
def create_simulation(*, actor: Actor, settings: Mapping[str, Any], name: str = "") -> Simulation:
    """Ask for a simulation; it is queued.

    :raises Invalid: naming every field that is at fault.
    :raises Conflict: when too many wait already.
    """
    wanted = parse_settings(settings, limits())
    trace = _trace(wanted)
    policies = resolve(wanted.policies)
    if Simulation.objects.filter(state__in=ACTIVE).count() >= _MOST_QUEUED:
        raise Conflict(f"{_MOST_QUEUED} simulations are waiting or running already; cancel some, or wait.")
    made = Simulation.objects.create(
        name=name.strip()[:200],
        settings=msgspec.to_builtins(wanted),
        policies=[{"name": name, "content": content} for name, content in policies.items()],
        trace=trace,
        trace_name=wanted.trace if trace is None else trace.name,
        author=actor.label,
        user_id=actor.user_id,
    )
    record(actor=actor, action="simulation.create", target=_target(made), after=made.settings)
    ring_on_commit(WORK)
    return made


@transaction.atomic
def cancel_simulation(*, actor: Actor, simulation_id: UUID | str) -> Simulation:
    """Cancel a simulation; the process that runs it is ended within two seconds.

    :raises IllegalTransition: when it has ended.
    """
    simulation = _locked(simulation_id)
    simulation.state = next_state(simulation.life, Event.CANCEL)
    simulation.claim = None
    simulation.reason = f"Cancelled by {actor.label}."
    simulation.ended_at = timezone.now()
    simulation.save()
    record(actor=actor, action="simulation.cancel", target=_target(simulation))
    return simulation


@transaction.atomic
def delete_simulation(*, actor: Actor, simulation_id: UUID | str) -> None:
    """Delete a simulation that has ended, with its result.

    :raises Conflict: while it is queued or running.
    """
    simulation = _locked(simulation_id)
    if simulation.life in ACTIVE:
        raise Conflict(f"It is {simulation.state}; cancel it first.", state=simulation.state)
    record(actor=actor, action="simulation.delete", target=_target(simulation), before=simulation.settings)
    simulation.delete()


def _trace(wanted: SimulationSettings) -> Trace | None:
    if wanted.trace in GENERATORS:
        return None
    only_generated = [name for name in ("duration_s", "requests_per_s") if getattr(wanted, name) is not None]
    if only_generated:
        raise Invalid({name: ["Only a generator can be told this."] for name in only_generated})
    try:
        found = Trace.objects.filter(pk=UUID(wanted.trace)).first()
    except ValueError:
        found = None
    if found is None:
        known = ", ".join(GENERATORS)
        raise Invalid({"trace": [f"It must be the id of a trace that was taken in, or one of: {known}."]})
    return found


def _locked(simulation_id: UUID | str) -> Simulation:
    simulation = Simulation.objects.select_for_update().filter(pk=simulation_id).first()
    if simulation is None:
        raise NotFound("There is no such simulation.")
    return simulation


def _target(simulation: Simulation) -> tuple[str, object, str]:
    return ("simulation", simulation.pk, str(simulation))
