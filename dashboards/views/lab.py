"""The laboratory: asking for simulations, following them, looking at what came out."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.accounts.access import Scope
from controlplane.errors import ControlPlaneError, Invalid, NotFound
from controlplane.lab import report, selectors
from controlplane.lab.lifecycle import ACTIVE, State
from controlplane.lab.limits import limits
from controlplane.lab.models import Simulation
from controlplane.lab.own_traffic import own_recording
from controlplane.lab.recordings import recordings
from controlplane.lab.services import drafts, simulations, traces
from controlplane.policies import selectors as policies
from dashboards.access import may, needs, signed_in_actor
from dashboards.forms.simulation_form import SimulationForm, first_settings, settings_like
from dashboards.lab_result import SWEPT, Result, View, provenance_lines, shown
from dashboards.refusal import refused

LISTED = 50
_SCOPE = Scope.POLICIES


@require_http_methods(["GET", "POST"])
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List simulations beside the form that asks for one."""
    if request.method == "POST":
        return _ask(request)
    return _form_page(request, _form(initial=_initial(request)))


@require_safe
@login_required
@never_cache
def rows(request: HttpRequest) -> HttpResponse:
    """Return the lines of the list alone; the page asks for them again and again."""
    return render(request, "dashboards/lab/rows.html", _listed(request))


@require_safe
@login_required
@never_cache
@vary_on_headers("HX-Request")
def detail(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Show one simulation beside the list; for htmx that alone."""
    context = _shown(request, _find(simulation_id))
    alone = request.headers.get("HX-Request") == "true" and "HX-History-Restore-Request" not in request.headers
    if alone:
        return render(request, "dashboards/lab/detail.html", context)
    return render(request, "dashboards/lab/page.html", _listed(request) | context)


@require_safe
@login_required
@never_cache
def status(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Return how far a simulation is; when it has ended, all there is to see, in the place of everything."""
    one = _find(simulation_id)
    if one.life in ACTIVE:
        return render(request, "dashboards/lab/status.html", _now(request, one))
    answer = render(request, "dashboards/lab/detail.html", _shown(request, one))
    answer["HX-Retarget"], answer["HX-Reswap"] = "#detail", "innerHTML"
    return answer


@require_safe
@login_required
@never_cache
def download(request: HttpRequest, simulation_id: UUID, kind: str) -> HttpResponse:
    """Give a result as a file: JSON, or a page that needs nothing else."""
    if kind not in {"html", "json"}:
        raise Http404
    one = _find(simulation_id)
    try:
        comparison = selectors.comparison(one.pk)
    except ControlPlaneError as error:
        raise Http404(str(error)) from error
    as_page = kind == "html"
    content: bytes | str = report.as_html(comparison) if as_page else report.as_json(comparison)
    answer = HttpResponse(content, content_type="text/html; charset=utf-8" if as_page else "application/json")
    answer["Content-Disposition"] = f'attachment; filename="simulation-{str(one.pk)[:8]}.{kind}"'
    return answer


@require_POST
@needs(_SCOPE)
def cancel(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Cancel a simulation."""
    try:
        simulations.cancel_simulation(actor=signed_in_actor(request), simulation_id=simulation_id)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    return redirect("dashboards:simulation", simulation_id)


@require_POST
@needs(_SCOPE)
def delete(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Delete a simulation that has ended."""
    try:
        simulations.delete_simulation(actor=signed_in_actor(request), simulation_id=simulation_id)
    except ControlPlaneError as error:
        messages.error(request, str(error))
        return redirect("dashboards:simulation", simulation_id)
    messages.success(request, "The simulation and its result are deleted.")
    return redirect("dashboards:lab")


@require_POST
@needs(_SCOPE)
def draft(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Keep a simulated policy as the draft of a stored one."""
    name = request.POST.get("name", "").strip()
    label = request.POST.get("policy", "")
    try:
        policy, made = drafts.draft_policy(
            actor=signed_in_actor(request), simulation_id=simulation_id, label=label, name=name
        )
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:simulation", simulation_id)
    if made:
        messages.success(request, f"Policy {policy.name} is made from {label}; no workload uses it yet.")
    else:
        messages.success(request, f"{label} is kept as the draft of {policy.name}; what routes stays as it is.")
    return redirect("dashboards:policy", policy.name)


@require_POST
@needs(_SCOPE)
def upload(request: HttpRequest) -> HttpResponse:
    """Take in a trace: a file that was sent, or a recording of a router worker."""
    file, recording = request.FILES.get("file"), request.POST.get("recording", "")
    actor = signed_in_actor(request)
    try:
        if file is not None:
            kept = traces.take_in(actor=actor, name=file.name or "", chunks=file.chunks())
        else:
            kept = traces.take_recording(actor=actor, name=recording)
    except Invalid as error:
        for fault in (text for texts in error.fields.values() for text in texts):
            messages.error(request, f"{file.name if file else recording}: {fault}")
        return redirect("dashboards:lab")
    except ControlPlaneError as error:
        messages.error(request, str(error))
        return redirect("dashboards:lab")
    messages.success(request, f"{kept.name} is read: {kept.statistics['requests']:,} requests, {kept.format}.")
    return redirect(f"{reverse('dashboards:lab')}?trace={kept.pk}")


@require_POST
@needs(_SCOPE)
def delete_trace(request: HttpRequest, trace_id: UUID) -> HttpResponse:
    """Delete a trace."""
    try:
        traces.delete_trace(actor=signed_in_actor(request), trace_id=trace_id)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    return redirect("dashboards:lab")


@needs(_SCOPE)
def _ask(request: HttpRequest) -> HttpResponse:
    form = _form(request.POST)
    if form.is_valid():
        name = form.cleaned_data["name"]
        try:
            made = simulations.create_simulation(actor=signed_in_actor(request), settings=form.settings(), name=name)
        except Invalid as error:
            form.add_faults(error.fields)
        except ControlPlaneError as error:
            form.add_error(None, str(error))
        else:
            return redirect("dashboards:simulation", made.pk)
    return _form_page(request, form, 400)


def _form(data: Mapping[str, Any] | None = None, initial: Mapping[str, Any] | None = None) -> SimulationForm:
    return SimulationForm(
        data,
        traces=selectors.traces(),
        policies=policies.policies(),
        recording=own_recording() is not None,
        initial=initial,
    )


def _initial(request: HttpRequest) -> dict[str, Any]:
    initial = first_settings(selectors.registered_fleet())
    like = _find_optional(request.GET.get("like", ""))
    if like is not None:
        initial |= settings_like(like.name, like.settings)
    if trace := request.GET.get("trace"):
        initial |= {"trace": trace}
    return initial


def _form_page(request: HttpRequest, form: SimulationForm, status: int = 200) -> HttpResponse:
    context = _listed(request) | {
        "form": form,
        "recordings": recordings(),
        "traces": selectors.traces(),
        "limits": limits(),
    }
    return render(request, "dashboards/lab/page.html", context, status=status)


def _find(simulation_id: UUID) -> Simulation:
    try:
        return selectors.simulation(simulation_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _find_optional(text: str) -> Simulation | None:
    try:
        return selectors.simulations().filter(pk=UUID(text)).first()
    except ValueError:
        return None


def _listed(request: HttpRequest) -> dict[str, Any]:
    return {"simulations": selectors.simulations()[:LISTED], "may_run": may(request, _SCOPE)}


def _now(request: HttpRequest, one: Simulation) -> dict[str, Any]:
    return {
        "one": one,
        "active": one.life in ACTIVE,
        "waiting": selectors.waiting_before(one) if one.life is State.QUEUED else 0,
        "may_run": may(request, _SCOPE),
    }


def _shown(request: HttpRequest, one: Simulation) -> dict[str, Any]:
    context = _now(request, one)
    if one.life is not State.DONE:
        return context
    comparison = selectors.comparison(one.pk)
    other = _find_optional(request.GET.get("with", ""))
    results = [Result(comparison)]
    if other is not None and other.life is State.DONE:
        results = [Result(comparison, "A"), Result(selectors.comparison(other.pk), "B")]
    return context | {
        "shown": shown(results, _view(request)),
        "other": other,
        "others": selectors.simulations().filter(state=State.DONE).exclude(pk=one.pk)[:LISTED],
        "swept": SWEPT,
        "provenance": provenance_lines(comparison),
        "stored": policies.policies(),
    }


def _view(request: HttpRequest) -> View:
    try:
        rate = float(request.GET["rate"])
    except (KeyError, ValueError):
        rate = None
    return View(rate, request.GET.get("policy", ""), request.GET.get("figure", ""))
