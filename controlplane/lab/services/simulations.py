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
from controlplane.lab.own_traffic import own_minutes, own_recording
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
    return queue(actor=actor, wanted=wanted, contents=resolve(wanted.policies), name=name)


@transaction.atomic
def queue(
    *,
    actor: Actor,
    wanted: SimulationSettings,
    contents: Mapping[str, Mapping[str, Any]],
    name: str,
    preview_of: str = "",
) -> Simulation:
    """Queue a simulation of policies by their labels.

    :raises Invalid: when the trace cannot be used.
    :raises Conflict: when too many wait already.
    """
    trace = _trace(wanted)
    if Simulation.objects.filter(state__in=ACTIVE).count() >= _MOST_QUEUED:
        raise Conflict(f"{_MOST_QUEUED} simulations are waiting or running already; cancel some, or wait.")
    made = Simulation.objects.create(
        name=name.strip()[:200],
        settings=msgspec.to_builtins(wanted),
        policies=[{"name": label, "content": dict(content)} for label, content in contents.items()],
        trace=trace,
        trace_name=_trace_name(wanted, trace),
        preview_of=preview_of,
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
    if own_minutes(wanted.trace) is not None:
        if own_recording() is None:
            raise Invalid({"trace": ["No router worker has recorded anything; see POINTSMAN_RECORD."]})
        return None
    try:
        found = Trace.objects.filter(pk=UUID(wanted.trace)).first()
    except ValueError:
        found = None
    if found is None:
        known = ", ".join(GENERATORS)
        raise Invalid(
            {"trace": [f"It must be the id of a trace that was taken in, own:MINUTES (up to 60), or one of: {known}."]}
        )
    return found


def _trace_name(wanted: SimulationSettings, trace: Trace | None) -> str:
    minutes = own_minutes(wanted.trace)
    if minutes is not None:
        return f"own traffic, {minutes} min"
    return wanted.trace if trace is None else trace.name


def _locked(simulation_id: UUID | str) -> Simulation:
    simulation = Simulation.objects.select_for_update().filter(pk=simulation_id).first()
    if simulation is None:
        raise NotFound("There is no such simulation.")
    return simulation


def _target(simulation: Simulation) -> tuple[str, object, str]:
    return ("simulation", simulation.pk, str(simulation))
