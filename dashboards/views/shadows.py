"""The shadow report of a workload: what its other policy would have done, over a chosen window."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.errors import NotFound
from controlplane.policies import selectors
from controlplane.policies.shadow_report import WINDOWS_H, shadow_reports

_DEFAULT_H = 24
MOST_MOVES = 20


@require_safe
@login_required
@never_cache
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Show the report; htmx asks for its numbers again and again."""
    hours = _hours(request)
    try:
        workload = selectors.workload_named(name)
        reports = shadow_reports(name, hours, timezone.now())
    except NotFound as error:
        raise Http404(str(error)) from error
    context: dict[str, Any] = {
        "workload": workload,
        "reports": reports,
        "hours": hours,
        "windows": WINDOWS_H,
        "most_moves": MOST_MOVES,
    }
    alone = request.headers.get("HX-Request") == "true"
    return render(request, f"dashboards/shadows/{'reports' if alone else 'page'}.html", context)


def _hours(request: HttpRequest) -> int:
    wanted = request.GET.get("hours", str(_DEFAULT_H))
    if wanted not in {str(hours) for hours in WINDOWS_H}:
        raise Http404
    return int(wanted)
