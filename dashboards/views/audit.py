"""The audit log: who changed what, with before and after."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.accounts import selectors
from controlplane.accounts.models import AuditEntry
from dashboards.record_diff import differences

PAGE_ROWS = 50


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List changes, newest first."""
    return render(request, "dashboards/audit/page.html", _listed(request))


@require_safe
@login_required
@never_cache
@vary_on_headers("HX-Request")
def detail(request: HttpRequest, entry_id: int) -> HttpResponse:
    """Show one change beside the list; for htmx that alone."""
    entry = selectors.audit_entries().filter(pk=entry_id).first()
    if entry is None:
        raise Http404
    context = {"entry": entry, "changes": differences(entry.before or {}, entry.after or {})}
    if request.headers.get("HX-Request") == "true":
        return render(request, "dashboards/audit/detail.html", context)
    return render(request, "dashboards/audit/page.html", _listed(request) | context)


def _listed(request: HttpRequest) -> dict[str, Any]:
    text, kind = request.GET.get("q", "").strip(), request.GET.get("kind", "")
    entries = selectors.audit_entries()
    if text:
        entries = entries.filter(
            Q(actor__icontains=text)
            | Q(object_name__icontains=text)
            | Q(action__icontains=text)
            | Q(message__icontains=text)
        )
    if kind:
        entries = entries.filter(object_type=kind)
    kinds = AuditEntry.objects.order_by("object_type").values_list("object_type", flat=True).distinct()
    query = request.GET.copy()
    query.pop("page", None)
    return {
        "rows": Paginator(entries, PAGE_ROWS).get_page(request.GET.get("page")),
        "kinds": list(kinds),
        "filters": {"q": text, "kind": kind},
        "query": query.urlencode(),
    }
