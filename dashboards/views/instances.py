"""Instances: the list, one of them beside it, registering, draining, removing."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.accounts import selectors as accounts
from controlplane.accounts.access import Scope
from controlplane.accounts.models import AuditEntry
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.fleet import selectors
from controlplane.fleet.models import Instance
from controlplane.fleet.services import moves, registration
from controlplane.preloading import selectors as preloading
from controlplane.telemetry.frame import InstanceRow
from controlplane.telemetry.in_flight import in_flight_by_instance
from controlplane.telemetry.observed_pace import observed_pace
from controlplane.telemetry.present import live_instances
from dashboards.access import may, needs, signed_in_actor
from dashboards.embedding import embeddable_json
from dashboards.forms.instance_form import InstanceForm
from dashboards.instance_view import actions, lines, shown_state
from dashboards.plots.histogram import histogram_figure
from dashboards.preload_view import preload_row, progress_of

HISTORY_ROWS = 20
PRELOAD_ROWS = 5
RANK_BATCHES = (1, 32)
"""Batches for which a decode step of each rank is shown: one request alone, and a busy engine."""
MOVES = {"drain": moves.drain, "undrain": moves.undrain, "maintenance": moves.maintain}


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all instances."""
    return render(request, "dashboards/instances/page.html", _listed(request))


@gzip_page
@require_safe
@login_required
@never_cache
def rows(request: HttpRequest) -> HttpResponse:
    """Return the lines of the list alone; the page asks for them again and again.

    They are compressed, which is safe because there is nothing secret in them: no token, and nothing from the address.
    """
    return render(request, "dashboards/instances/rows.html", _listed(request))


@require_safe
@login_required
@never_cache
@vary_on_headers("HX-Request")
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """Show one instance beside the list; for htmx that alone."""
    context = _shown(request, _find(name))
    if request.headers.get("HX-Request") == "true":
        return render(request, "dashboards/instances/detail.html", context)
    return render(request, "dashboards/instances/page.html", _listed(request) | context)


@require_safe
@login_required
@never_cache
def status(request: HttpRequest, name: str) -> HttpResponse:
    """Return what moves of one instance: state, requests in flight, gauges; with its probe and its history."""
    instance = _find(name)
    return render(
        request, "dashboards/instances/moving.html", _now(request, instance) | {"history": _history(instance)}
    )


@require_safe
@login_required
@never_cache
def preloads(request: HttpRequest, name: str) -> HttpResponse:
    """Return how far preloading is at one instance."""
    return render(request, "dashboards/instances/preloads.html", _preloading(_find(name)))


@require_http_methods(["GET", "POST"])
@needs(Scope.INSTANCES)
@never_cache
def register(request: HttpRequest) -> HttpResponse:
    """Register an instance by a form, beside the call that does the same."""
    form = InstanceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            instance = registration.register(actor=signed_in_actor(request), spec=form.spec())
        except Invalid as error:
            form.add_faults(error.fields)
        except Conflict as error:
            form.add_faults({"name": [str(error)]})
        else:
            messages.success(request, f"{instance.name} is registered and being probed.")
            return redirect("dashboards:instance", instance.name)
    context = {"form": form, "web_url": f"{request.scheme}://{request.get_host()}"}
    return render(request, "dashboards/instances/register.html", context, status=400 if form.errors else 200)


@require_POST
@needs(Scope.INSTANCES)
def move(request: HttpRequest, name: str, wish: str) -> HttpResponse:
    """Drain, bring back, or take out at once."""
    if wish not in MOVES:
        raise Http404
    instance = _find(name)
    try:
        MOVES[wish](actor=signed_in_actor(request), instance_id=instance.pk, reason=request.POST.get("reason", ""))
    except Conflict as error:
        messages.error(request, f"{name}: {error}")
    return redirect("dashboards:instance", name)


@require_POST
@needs(Scope.INSTANCES)
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Remove an instance; with requests in flight only when that is confirmed."""
    instance = _find(name)
    in_flight = in_flight_by_instance().get(str(instance.pk), 0)
    force = request.POST.get("force") == "on"
    try:
        moves.remove(actor=signed_in_actor(request), instance_id=instance.pk, in_flight=in_flight, force=force)
    except Conflict as error:
        messages.error(request, f"{name}: {error}")
        return redirect("dashboards:instance", name)
    messages.success(request, f"{name} is removed.")
    return redirect("dashboards:instances")


def _find(name: str) -> Instance:
    try:
        return selectors.instance_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error


def _listed(request: HttpRequest) -> dict[str, Any]:
    wanted, text = request.GET.get("state", ""), request.GET.get("q", "").strip().lower()
    found = [line for line in lines(selectors.living(), live_instances()) if text in line.instance.name.lower()]
    return {
        "lines": [line for line in found if wanted in {"", line.shown_state}],
        "states": sorted({line.shown_state for line in found} | ({wanted} - {""})),
        "filters": {"state": wanted, "q": request.GET.get("q", "")},
        "query": request.GET.urlencode(),
        "total": len(found),
        "may_change": may(request, Scope.INSTANCES),
    }


def _now(request: HttpRequest, instance: Instance) -> dict[str, Any]:
    live = live_instances().get(str(instance.pk))
    return {
        "one": instance,
        "live": live,
        "state": shown_state(instance, live),
        "in_flight": in_flight_by_instance().get(str(instance.pk)),
        "actions": actions(instance),
        "may_change": may(request, Scope.INSTANCES),
    }


def _preloading(instance: Instance) -> dict[str, Any]:
    now, mine = timezone.now(), list(preloading.preloads_of(instance.name, instance.epoch))
    return {
        "preloading": next(iter(progress_of(mine, now)), None),
        "preloads": [preload_row(one, now) for one in mine[:PRELOAD_ROWS]],
    }


def _history(instance: Instance) -> "QuerySet[AuditEntry]":
    return accounts.audit_entries().filter(object_type="instance", object_id=str(instance.pk))[:HISTORY_ROWS]


def _shown(request: HttpRequest, instance: Instance) -> dict[str, Any]:
    now = _now(request, instance) | _preloading(instance)
    return now | {
        "history": _history(instance),
        "rank_batches": RANK_BATCHES,
        "pace": observed_pace(str(instance.pk), instance.name, instance.hardware, instance.kv_capacity_tokens),
        "figure": embeddable_json(_figure(now["live"])),
    }


def _figure(live: InstanceRow | None) -> Mapping[str, Any] | None:
    if live is None or not live.score_counts:
        return None
    counts = dict(zip(live.score_counts[::2], live.score_counts[1::2], strict=True))
    marks = {"P50": live.score.p50, "P95": live.score.p95, "P99": live.score.p99}
    return histogram_figure(counts, x_title="P-token × BS when placed", marks=marks)
