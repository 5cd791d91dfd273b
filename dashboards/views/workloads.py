"""Workloads: which traffic is routed by which policy, and what came of it in the last minute.

The page also shows model names (:mod:`dashboards.views.aliases`) and admission (:mod:`dashboards.views.admission`).
"""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.accounts.access import Scope
from controlplane.errors import ControlPlaneError, Invalid, NotFound
from controlplane.policies import selectors
from controlplane.policies.services import workloads
from controlplane.telemetry.present import live_workers, live_workloads
from dashboards.access import may, needs, signed_in_actor
from dashboards.policy_editor import pretty, read_content
from dashboards.refusal import refused
from dashboards.views import admission, aliases


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all workloads in the order in which their rules are tried."""
    return render(request, "dashboards/workloads/page.html", _whole(request))


@require_safe
@login_required
@never_cache
def rows(request: HttpRequest) -> HttpResponse:
    """Return the numbers alone; the page asks for them again and again."""
    return render(request, "dashboards/workloads/rows.html", _listed(request))


@require_POST
@needs(Scope.POLICIES)
def create(request: HttpRequest) -> HttpResponse:
    """Make a workload."""
    return _done(request, lambda settings: workloads.create_workload(name=request.POST.get("name", ""), **settings))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Scope.POLICIES)
@never_cache
@vary_on_headers("HX-Request")
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of a workload, for htmx alone, or change it."""
    if request.method == "POST":
        return _done(request, lambda settings: workloads.change_workload(name=name, **settings))
    try:
        row = selectors.workload_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error
    shown = {"row": row, "match": pretty(row.match), "policies": _policies()}
    if request.headers.get("HX-Request") == "true":
        return render(request, "dashboards/workloads/edit_form.html", shown)
    return render(request, "dashboards/workloads/page.html", _whole(request) | shown)


@require_POST
@needs(Scope.POLICIES)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a workload; what it matched goes to the next rule."""
    try:
        workloads.delete_workload(actor=signed_in_actor(request), name=name)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:workloads")
    messages.success(request, f"{name} is deleted; what it matched goes to the next rule.")
    return redirect("dashboards:workloads")


def _done(request: HttpRequest, service: Any) -> HttpResponse:
    try:
        workload = service({"actor": signed_in_actor(request), **_settings(request)})
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:workloads", names={"JSON": "match"})
    messages.success(request, f"{workload.name} is kept; workers take it over between two requests.")
    return redirect("dashboards:workloads")


def _settings(request: HttpRequest) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "policy": request.POST.get("policy", ""),
        "shadow_policy": request.POST.get("shadow_policy") or None,
        "description": request.POST.get("description", ""),
        "concurrent": _limit(request.POST.get("concurrent", "")),
    }
    if "match" in request.POST:
        settings["match"] = read_content(request.POST["match"] or "{}")
    return settings


def _limit(text: str) -> int | None:
    try:
        return int(text) if text.strip() else None
    except ValueError as error:
        raise Invalid({"concurrent": ["It must be a whole number, or empty for no limit."]}) from error


def _whole(request: HttpRequest) -> dict[str, Any]:
    return _listed(request) | aliases.listed() | admission.shown(request) | {"policies": _policies()}


def _policies() -> list[str]:
    return [policy.name for policy in selectors.policies()]


def _listed(request: HttpRequest) -> dict[str, Any]:
    live, workers = live_workloads(), live_workers()
    return {
        "lines": [
            (row, live.get(row.name), row.concurrent and row.concurrent * workers) for row in selectors.workloads()
        ],
        "workers": workers,
        "may_change": may(request, Scope.POLICIES),
    }
