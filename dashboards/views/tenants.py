"""Tenants: limits, keys (shown once), use."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts import selectors
from controlplane.accounts.access import Scope
from controlplane.accounts.models import Tenant
from controlplane.accounts.services import tenants
from controlplane.errors import ControlPlaneError, Invalid, NotFound
from controlplane.preloading.selectors import opted_out
from dashboards.access import may, needs, signed_in_actor
from dashboards.embedding import embeddable_json
from dashboards.forms.tenant_form import TenantForm
from dashboards.plots.lines import bars_figure
from dashboards.refusal import faulty, refused

USAGE_HOURS = 72


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all tenants."""
    return _page(request, None)


@require_safe
@login_required
@never_cache
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """Open one tenant beside the list."""
    return _page(request, _find(name))


@require_safe
@login_required
@never_cache
def use(request: HttpRequest, name: str) -> HttpResponse:
    """Return what a tenant used, as the chart has it; the page asks again and again."""
    return render(request, "dashboards/tenants/use.html", {"figure": embeddable_json(_figure(_find(name).name))})


@require_POST
@needs(Scope.TENANTS)
def create(request: HttpRequest) -> HttpResponse:
    """Make a tenant without limits."""
    name = request.POST.get("name", "").strip()
    try:
        tenants.create_tenant(actor=signed_in_actor(request), name=name)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:tenants")
    return redirect("dashboards:tenant", name)


@require_POST
@needs(Scope.TENANTS)
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Change limits and description."""
    form = TenantForm(request.POST)
    if not form.is_valid():
        return refused(request, faulty(form), "dashboards:tenant", name)
    try:
        tenants.change_tenant(actor=signed_in_actor(request), name=name, **form.settings())
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:tenant", name)
    messages.success(request, "Kept; routers hold the tenant to it from their next configuration on.")
    return redirect("dashboards:tenant", name)


@require_POST
@needs(Scope.TENANTS)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a tenant and its keys; what it used stays on record."""
    try:
        tenants.delete_tenant(actor=signed_in_actor(request), name=name)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:tenants")
    messages.success(request, f"{name} and its keys are deleted.")
    return redirect("dashboards:tenants")


@require_POST
@needs(Scope.TENANTS)
@never_cache
def create_key(request: HttpRequest, name: str) -> HttpResponse:
    """Make a key, and show it this once: in the answer itself, so that it lies in no address and no session."""
    tenant, typed = _find(name), request.POST.get("key_name", "")
    try:
        _, text = tenants.create_key(actor=signed_in_actor(request), tenant=name, name=typed)
    except ControlPlaneError as error:
        faults = error.fields.get("name", [str(error)]) if isinstance(error, Invalid) else [str(error)]
        return _page(request, tenant, {"key_name": typed, "key_faults": faults}, status=error.status)
    return _page(request, tenant, {"new_key": text}, status=201)


@require_POST
@needs(Scope.TENANTS)
def revoke_key(request: HttpRequest, name: str, key_id: UUID) -> HttpResponse:
    """End a key."""
    try:
        key = tenants.revoke_key(actor=signed_in_actor(request), tenant=name, key_id=key_id)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{key.name} is revoked; routers refuse it from their next configuration on.")
    return redirect("dashboards:tenant", name)


def _page(
    request: HttpRequest, tenant: Tenant | None, extra: Mapping[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "tenants": selectors.tenants(),
        "tenant": tenant,
        "may_change": may(request, Scope.TENANTS),
    }
    if tenant is not None:
        context |= {
            "keys": tenant.keys.all(),
            "keeps_prefixes": tenant.name not in opted_out(),
            "figure": embeddable_json(_figure(tenant.name)),
            **(extra or {}),
        }
    return render(request, "dashboards/tenants/page.html", context, status=status)


def _figure(name: str) -> Mapping[str, Any] | None:
    prompt: dict[float, int] = defaultdict(int)
    output: dict[float, int] = defaultdict(int)
    for row in selectors.usage(name)[: USAGE_HOURS * 10]:
        at_s = row.hour.timestamp()
        prompt[at_s] += row.prompt_tokens
        output[at_s] += row.output_tokens
    if not prompt:
        return None
    hours = sorted(prompt)[-USAGE_HOURS:]
    series = {
        "prompt tokens": [(at_s, float(prompt[at_s])) for at_s in hours],
        "output tokens": [(at_s, float(output[at_s])) for at_s in hours],
    }
    return bars_figure(series, y_title="tokens an hour")


def _find(name: str) -> Tenant:
    try:
        return selectors.tenant_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error
