"""Alerts: the list, one of them beside it, and what people do with them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.accounts.access import ROLE_SCOPES, Role, Scope, allows
from controlplane.accounts.models import User
from controlplane.alerts import selectors
from controlplane.alerts.changes import newest_change
from controlplane.alerts.feed import read_frame
from controlplane.alerts.finding import Severity
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert
from controlplane.alerts.services import handling
from controlplane.errors import ControlPlaneError, NotFound
from dashboards.access import may, needs, signed_in_actor
from dashboards.alert_row import alert_rows
from dashboards.json_answer import json_answer
from dashboards.refusal import refused

PAGE_ROWS = 200
OPEN = "open"
ACK_DURATIONS = (("", "until it is over"), ("3600", "for 1 hour"), ("14400", "for 4 hours"), ("86400", "for 1 day"))


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List alerts; open ones unless the address says otherwise."""
    return render(request, "dashboards/alerts/page.html", _listed(request))


@require_safe
@login_required
@never_cache
def rows(request: HttpRequest) -> HttpResponse:
    """Return the lines of the list alone; the page asks for them when something changes."""
    return render(request, "dashboards/alerts/rows.html", _listed(request))


@require_safe
@login_required
@never_cache
def frame(request: HttpRequest) -> HttpResponse:
    """Return what the socket sends, for browsers that cannot hold one."""
    return json_answer(read_frame())


@require_safe
@login_required
@never_cache
@vary_on_headers("HX-Request")
def detail(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    """Show one alert beside the list; for htmx that alone."""
    context = _shown(request, _find(alert_id))
    if request.headers.get("HX-Request") == "true":
        return render(request, "dashboards/alerts/detail.html", context)
    return render(request, "dashboards/alerts/page.html", _listed(request) | context)


@require_safe
@login_required
@never_cache
def state(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    """Return the state of one alert alone."""
    return render(request, "dashboards/alerts/state.html", _shown(request, _find(alert_id)))


@require_safe
@login_required
@never_cache
def story(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    """Return the evidence and the timeline of one alert alone."""
    return render(request, "dashboards/alerts/story.html", _shown(request, _find(alert_id)))


@require_POST
@needs(Scope.ALERTS)
def act(request: HttpRequest, alert_id: UUID, action: str) -> HttpResponse:
    """Acknowledge, resolve, assign or comment on one alert."""
    service, arguments = _asked(request, action)
    try:
        service(actor=signed_in_actor(request), alert_id=_find(alert_id).pk, **arguments)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:alert", alert_id, names={"text": "comment"})
    return redirect("dashboards:alert", alert_id)


@require_POST
@needs(Scope.ALERTS)
def bulk(request: HttpRequest) -> HttpResponse:
    """Do one thing to the chosen alerts."""
    service, arguments = _asked(request, request.POST.get("action", ""))
    chosen = request.POST.getlist("alert")
    try:
        refused = handling.each(service, chosen, actor=signed_in_actor(request), **arguments)
    except ControlPlaneError as error:
        messages.error(request, str(error) if chosen else "Choose alerts first, by the boxes at the left.")
    else:
        if refused:
            messages.warning(request, f"{len(refused)} of {len(chosen)} were refused: {next(iter(refused.values()))}")
    return redirect("dashboards:alerts")


def _asked(request: HttpRequest, action: str) -> tuple[Callable[..., Alert], dict[str, Any]]:
    text = request.POST.get("comment", "").strip()
    match action:
        case "acknowledge":
            return handling.acknowledge, {"until": _until(request.POST.get("duration", "")), "comment": text}
        case "resolve":
            return handling.resolve, {"comment": text}
        case "assign":
            return handling.assign, {"username": request.POST.get("assignee") or None}
        case "comment":
            return handling.comment, {"text": text}
    raise Http404


def _until(seconds: str) -> datetime | None:
    if seconds not in dict(ACK_DURATIONS):
        raise Http404
    return timezone.now() + timedelta(seconds=int(seconds)) if seconds else None


def _find(alert_id: UUID) -> Alert:
    try:
        return selectors.alert(alert_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _listed(request: HttpRequest) -> dict[str, Any]:
    change = newest_change()  # read first, so that the page can only think itself older than it is
    chosen = {name: request.GET.get(name, "") for name in ("q", "kind", "severity")}
    chosen["state"] = request.GET.get("state", OPEN)
    found = selectors.open_alerts() if chosen["state"] == OPEN else selectors.alerts()
    if chosen["state"] in set(AlertState):
        found = found.filter(state=chosen["state"])
    wanted = {name: chosen[name] for name in ("kind", "severity") if chosen[name]}
    found = found.filter(**wanted, summary__icontains=chosen["q"].strip())
    return {
        "change": change,
        "rows": list(alert_rows(found[:PAGE_ROWS], selectors.active_silences())),
        "total": found.count(),
        "any": selectors.alerts().exists(),
        "filters": chosen,
        "filtered": bool(wanted or chosen["q"] or chosen["state"] not in {OPEN, ""}),
        "query": request.GET.urlencode(),
        "kinds": KINDS.values(),
        "severities": [severity.value for severity in Severity],
        "states": [OPEN, *(known.value for known in AlertState)],
        "durations": ACK_DURATIONS,
        "may_handle": may(request, Scope.ALERTS),
    }


def _shown(request: HttpRequest, alert: Alert) -> dict[str, Any]:
    (row,) = alert_rows([alert], selectors.active_silences())
    return {
        "one": row,
        "timeline": alert.timeline.order_by("-id"),
        "people": [user.username for user in User.objects.filter(is_active=True) if _handles(user)],
        "durations": ACK_DURATIONS,
        "may_handle": may(request, Scope.ALERTS),
    }


def _handles(user: User) -> bool:
    return allows(ROLE_SCOPES[Role(user.role)], Scope.ALERTS)
