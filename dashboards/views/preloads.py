"""Preloading: which prefixes are kept, how far each instance is, what became of each preload, who stays out."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts import selectors as accounts
from controlplane.accounts.access import Scope
from controlplane.errors import NotFound
from controlplane.preloading import selectors
from controlplane.preloading.services import set_keep_prefixes
from controlplane.telemetry.live_classes import live_classes
from dashboards.access import needs, signed_in_actor
from dashboards.preload_view import Stage, preload_row, progress_of

PAGE_ROWS = 100


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Show everything about preloading."""
    return render(request, "dashboards/preloads/page.html", _shown(request))


@require_safe
@login_required
@never_cache
def rows(request: HttpRequest) -> HttpResponse:
    """Return what moves on the page; it asks again and again."""
    return render(request, "dashboards/preloads/rows.html", _shown(request))


@require_POST
@needs(Scope.TENANTS)
def keep(request: HttpRequest, name: str) -> HttpResponse:
    """Allow that the beginnings of a tenant's prompts are kept, or forbid it."""
    try:
        tenant = accounts.tenant_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error
    wanted = request.POST.get("keep") == "on"
    set_keep_prefixes(actor=signed_in_actor(request), tenant=tenant, keep=wanted)
    said = "may be kept" if wanted else "are no longer kept; routers forget them with their next configuration"
    messages.success(request, f"Beginnings of {name}'s prompts {said}.")
    return redirect("dashboards:tenant", name)


def _shown(request: HttpRequest) -> dict[str, Any]:
    now = timezone.now()
    wanted, instance = request.GET.get("stage", ""), request.GET.get("instance", "").strip()
    preloads = list(selectors.preloads())
    listed = [preload_row(one, now) for one in preloads if instance in {"", one.instance_name}]
    listed = [row for row in listed if wanted in {"", row.stage}]
    return {
        "allowed": settings.PRELOAD,
        "most_prefixes": settings.PRELOAD_PREFIXES,
        "classes": live_classes(),
        "progress": progress_of(preloads, now),
        "rows": listed[:PAGE_ROWS],
        "total": len(listed),
        "stages": list(Stage),
        "filters": {"stage": wanted, "instance": instance},
        "instances": sorted({one.instance_name for one in preloads}),
        "query": request.GET.urlencode(),
        "silent": sorted(selectors.opted_out()),
    }
