"""Previewing a policy by simulation, beside its editor: asked for, followed, cancelled."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts.access import Scope
from controlplane.errors import ControlPlaneError, Invalid, NotFound
from controlplane.lab import selectors
from controlplane.lab.lifecycle import ACTIVE, State
from controlplane.lab.models import Simulation
from controlplane.lab.replay_result import replay_result
from controlplane.lab.services.previews import preview_policy
from controlplane.lab.services.simulations import cancel_simulation
from dashboards.access import may, needs, signed_in_actor
from dashboards.policy_editor import read_content

_TEMPLATE = "dashboards/policies/replay.html"


@require_POST
@needs(Scope.POLICIES)
@never_cache
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Ask for a preview of the content being edited."""
    minutes = request.POST.get("minutes", "")
    try:
        made = preview_policy(
            actor=signed_in_actor(request),
            name=name,
            content=read_content(request.POST.get("content", "")),
            minutes=int(minutes) if minutes.isdecimal() else 0,
        )
    except NotFound as error:
        raise Http404(str(error)) from error
    except Invalid as error:
        return render(request, _TEMPLATE, {"faults": error.fields})
    except ControlPlaneError as error:
        return render(request, _TEMPLATE, {"fault": str(error)})
    return _shown(request, made)


@require_safe
@login_required
@never_cache
def status(request: HttpRequest, name: str, simulation_id: UUID) -> HttpResponse:
    """Say how far a preview is, or what came out."""
    return _shown(request, _find(name, simulation_id))


@require_POST
@needs(Scope.POLICIES)
@never_cache
def cancel(request: HttpRequest, name: str, simulation_id: UUID) -> HttpResponse:
    """End a preview."""
    one = _find(name, simulation_id)
    try:
        one = cancel_simulation(actor=signed_in_actor(request), simulation_id=one.pk)
    except ControlPlaneError:
        one.refresh_from_db()  # it has ended by itself meanwhile
    return _shown(request, one)


def _find(name: str, simulation_id: UUID) -> Simulation:
    try:
        found = selectors.simulation(simulation_id)
    except NotFound as error:
        raise Http404(str(error)) from error
    if found.preview_of != name:
        raise Http404
    return found


def _shown(request: HttpRequest, one: Simulation) -> HttpResponse:
    context: dict[str, Any] = {
        "one": one,
        "active": one.life in ACTIVE,
        "waiting": selectors.waiting_before(one) if one.life is State.QUEUED else 0,
        "may_change": may(request, Scope.POLICIES),
    }
    if one.life is State.DONE:
        context["result"] = replay_result(selectors.comparison(one.pk))
    return render(request, _TEMPLATE, context)
