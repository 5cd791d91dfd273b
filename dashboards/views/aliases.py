"""Model names: the part of the Workloads page that lists them, and the dialog that edits one."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.access import Scope
from controlplane.aliases import selectors, services
from controlplane.aliases.models import ModelAlias
from controlplane.aliases.target import shares
from controlplane.errors import Conflict, ControlPlaneError, Invalid, NotFound
from controlplane.fleet.selectors import ModelsInRotation, models_in_rotation
from dashboards.access import needs, signed_in_actor
from dashboards.forms.alias_form import AliasForm, form_of, read_form

FORM = "dashboards/workloads/alias_form.html"


@dataclass(frozen=True, slots=True)
class TargetLine:
    """One model behind a name."""

    model: str
    weight: float
    share: float
    serving: int
    """Instances in rotation that serve it."""


@dataclass(frozen=True, slots=True)
class AliasLine:
    """One name."""

    alias: ModelAlias
    targets: tuple[TargetLine, ...]
    hides: int
    """Instances in rotation that serve a model of this very name."""


def listed() -> dict[str, Any]:
    """Return what the page shows of model names."""
    models = models_in_rotation()
    return {"aliases": [_line(alias, models) for alias in selectors.aliases()]}


@require_http_methods(["GET", "POST"])
@needs(Scope.POLICIES)
@never_cache
def edit(request: HttpRequest) -> HttpResponse:
    """Give the dialog's form, or keep what it says; what is wrong is shown at its field."""
    if request.method != "POST":
        name = request.GET.get("name")
        return _shown(request, AliasForm() if name is None else form_of(_find(name)))
    form = read_form(request.POST)
    try:
        if form.is_new:
            _refuse_taken(form.name)
        alias, _ = services.put_alias(
            actor=signed_in_actor(request), name=form.name, targets=form.targets(), description=form.description
        )
    except Invalid as error:
        return _shown(request, form.with_faults(error.fields))
    except Conflict as error:
        return _shown(request, form.with_faults({"name": [str(error)]}))
    messages.success(request, f"{alias.name} is kept; workers take it over between two requests.")
    return _back()


@require_POST
@needs(Scope.POLICIES)
def delete(request: HttpRequest) -> HttpResponse:
    """Delete a name."""
    name = request.POST.get("name", "")
    try:
        services.delete_alias(actor=signed_in_actor(request), name=name)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{name} is deleted; workers stop serving it between two requests.")
    return _back()


def _line(alias: ModelAlias, models: ModelsInRotation) -> AliasLine:
    split = alias.split
    targets = tuple(
        TargetLine(target.model, target.weight, share, models.serving(target.model))
        for target, share in zip(split, shares(split), strict=True)
    )
    return AliasLine(alias, targets, models.by_name.get(alias.name, 0))


def _refuse_taken(name: str) -> None:
    if selectors.aliases().filter(name=name).exists():
        raise Conflict(f"There is already a name {name}; open it in the table to change it.")


def _shown(request: HttpRequest, form: AliasForm) -> HttpResponse:
    return render(request, FORM, {"form": form, "models": sorted(models_in_rotation().by_name)})


def _back() -> HttpResponse:
    """Have htmx load the page anew: the table, and the message above it."""
    return HttpResponse(status=204, headers={"HX-Redirect": reverse("dashboards:workloads")})


def _find(name: str) -> ModelAlias:
    try:
        return selectors.alias_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error
