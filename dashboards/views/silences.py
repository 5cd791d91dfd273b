"""Silences: those that hold, those that are over, and a form with a preview."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.access import Scope
from controlplane.alerts import selectors
from controlplane.alerts.matchers import Operator, parse_matcher_lines
from controlplane.alerts.services.silencing import end_silence, silence
from controlplane.errors import ControlPlaneError, Invalid, NotFound
from dashboards.access import may, needs, signed_in_actor
from dashboards.alert_row import alert_rows, matcher_lines
from dashboards.forms.silence_form import SilenceForm

SHOWN = 100


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List silences, and make one."""
    return _make(request) if request.method == "POST" else _page(request, SilenceForm(initial=_initial(request)))


@require_POST
@login_required
@never_cache
def preview(request: HttpRequest) -> HttpResponse:
    """Show which open alerts some matchers match."""
    context: dict[str, Any] = {}
    try:
        matchers = parse_matcher_lines(request.POST.get("matchers", ""))
    except Invalid as error:
        context["faults"] = error.fields["matchers"]
    else:
        found = selectors.matched(matchers) if matchers else []
        context = {"matchers": matchers, "found": list(alert_rows(found[:SHOWN], [])), "count": len(found)}
    return render(request, "dashboards/alerts/silence_preview.html", context)


@require_POST
@needs(Scope.ALERTS)
def end(request: HttpRequest, silence_id: UUID) -> HttpResponse:
    """End a silence now."""
    try:
        end_silence(actor=signed_in_actor(request), silence_id=silence_id)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    return redirect("dashboards:silences")


@needs(Scope.ALERTS)
def _make(request: HttpRequest) -> HttpResponse:
    form = SilenceForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            silence(
                actor=signed_in_actor(request),
                matchers=values["matchers"],
                ends_at=form.ends_at(),
                comment=values["comment"],
            )
        except Invalid as error:
            for field, texts in error.fields.items():
                form.add_error(field if field in form.fields else None, ValidationError(texts))
        else:
            messages.success(request, "The silence holds from now on.")
            return redirect("dashboards:silences")
    return _page(request, form, status=400)


def _page(request: HttpRequest, form: SilenceForm, status: int = 200) -> HttpResponse:
    now = timezone.now()
    context = {
        "form": form,
        "label_values": selectors.open_label_values(),
        "operators": [operator.value for operator in Operator],
        "active": list(selectors.silences().filter(ends_at__gt=now)),
        "over": selectors.silences().filter(ends_at__lte=now)[:SHOWN],
        "now": now,
        "may_handle": may(request, Scope.ALERTS),
    }
    return render(request, "dashboards/alerts/silences.html", context, status=status)


def _initial(request: HttpRequest) -> dict[str, str]:
    """Return matchers for the alert that the address names."""
    try:
        return {"matchers": matcher_lines(selectors.alert(UUID(request.GET.get("alert", ""))))}
    except (ValueError, NotFound):
        return {}
