"""SLOs: the targets of workloads, how far they are met, and how fast the error budget burns."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts.access import Scope
from controlplane.errors import ControlPlaneError, NotFound
from controlplane.policies.selectors import workloads
from controlplane.slos import selectors, services
from controlplane.slos.models import Slo, SloMinute
from dashboards.access import may, needs, signed_in_actor
from dashboards.embedding import embeddable_json
from dashboards.forms.slo_form import SloForm
from dashboards.plots.lines import lines_figure
from dashboards.refusal import faulty, refused

CHARTED_MINUTES = 180


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all targets with their attainment over every window, and chart the last hours."""
    listed = list(selectors.slos())
    attained = selectors.attainment_of(listed)
    covered = {slo.workload_id for slo in listed}
    context = {
        "slos": [(slo, attained[slo.pk], embeddable_json(_figure(slo))) for slo in listed],
        "uncovered": [workload for workload in workloads() if workload.pk not in covered],
        "may_change": may(request, Scope.POLICIES),
    }
    return render(request, "dashboards/slos/page.html", context)


@require_safe
@login_required
@never_cache
def attained(request: HttpRequest, workload: str) -> HttpResponse:
    """Return the windows of a workload's targets, and their chart, for a page that stands."""
    try:
        slo = selectors.slo_of(workload)
    except NotFound as error:
        raise Http404(str(error)) from error
    figure = embeddable_json(_figure(slo))
    context = {"slo": slo, "windows": selectors.attainment_of([slo])[slo.pk], "figure": figure}
    return render(request, "dashboards/slos/attained.html", context)


@require_POST
@needs(Scope.POLICIES)
def put(request: HttpRequest) -> HttpResponse:
    """Give a workload targets."""
    form = SloForm(request.POST)
    workload = request.POST.get("workload", "")
    if not form.is_valid():
        return refused(request, faulty(form), "dashboards:slos")
    try:
        services.put_slo(actor=signed_in_actor(request), workload=workload, **form.settings())
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:slos")
    messages.success(request, f"The targets of {workload} hold from the next minute on.")
    return redirect("dashboards:slos")


@require_POST
@needs(Scope.POLICIES)
def delete(request: HttpRequest, workload: str) -> HttpResponse:
    """Take the targets of a workload away."""
    try:
        services.delete_slo(actor=signed_in_actor(request), workload=workload)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:slos")
    messages.success(request, f"{workload} has no targets any more.")
    return redirect("dashboards:slos")


def _figure(slo: Slo) -> Mapping[str, Any] | None:
    minutes = list(SloMinute.objects.filter(slo=slo).order_by("-minute")[:CHARTED_MINUTES])[::-1]
    if not minutes:
        return None
    series: dict[str, Sequence[tuple[float, float | None]]] = {}
    targets: dict[str, float] = {}
    if slo.ttft_s is not None:
        series["TTFT"] = [(m.minute * 60.0, _percent(m.ttft_good, m.ttft_counted)) for m in minutes]
        targets["TTFT objective"] = slo.ttft_percentile
    if slo.tpot_s is not None:
        series["TPOT"] = [(m.minute * 60.0, _percent(m.tpot_good, m.tpot_counted)) for m in minutes]
        targets["TPOT objective"] = slo.tpot_percentile
    return lines_figure(series, y_title="% within target", targets=targets)


def _percent(good: float, counted: int) -> float | None:
    return round(100 * good / counted, 3) if counted else None
