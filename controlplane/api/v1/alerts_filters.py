"""Filters and orders of the list of alerts."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from controlplane.alerts.finding import Severity
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import OPEN, AlertState
from controlplane.alerts.models import Alert
from controlplane.errors import Invalid

_STATES = [*(state.value for state in AlertState), "open"]
_ORDERS = ("started_at", "state_since", "last_seen_at", "severity", "kind")
_ORDERING = tuple(sign + name for name in _ORDERS for sign in ("", "-"))
_KINDS = list(KINDS)
PARAMETERS = [
    OpenApiParameter("state", str, many=True, enum=_STATES, description="Any of these; `open` is all but resolved."),
    OpenApiParameter("kind", str, many=True, enum=_KINDS),
    OpenApiParameter("severity", str, many=True, enum=[s.value for s in Severity]),
    OpenApiParameter("assignee", str, description="A user's name; empty for nobody."),
    OpenApiParameter("label", str, many=True, description="`name=value`; all must hold."),
    OpenApiParameter("search", str, description="Part of the summary."),
    OpenApiParameter("ordering", str, enum=list(_ORDERING), description="`-started_at` by default."),
]


def filtered(rows: QuerySet[Alert], query: QueryDict) -> QuerySet[Alert]:
    """Return the rows that a query asks for, in its order.

    :raises Invalid: for a value that cannot be.
    """
    if states := query.getlist("state"):
        _check("state", states, _STATES)
        rows = rows.filter(state__in=set(states) - {"open"} | (set(OPEN) if "open" in states else set()))
    if kinds := query.getlist("kind"):
        _check("kind", kinds, _KINDS)
        rows = rows.filter(kind__in=kinds)
    if severities := query.getlist("severity"):
        _check("severity", severities, [s.value for s in Severity])
        rows = rows.filter(severity__in=severities)
    if "assignee" in query:
        rows = rows.filter(assignee__username=query["assignee"]) if query["assignee"] else rows.filter(assignee=None)
    if search := query.get("search"):
        rows = rows.filter(Q(summary__icontains=search))
    for label in query.getlist("label"):
        rows = rows.filter(pk__in=_with_label(rows, label))
    ordering = query.get("ordering", "-started_at")
    _check("ordering", [ordering], _ORDERING)
    return rows.order_by(ordering, "pk")


def _with_label(rows: QuerySet[Alert], label: str) -> list[UUID]:
    name, equals, value = label.partition("=")
    if not name or not equals:
        raise Invalid({"label": [f"{label!r} is not of the form name=value."]})
    return [alert.pk for alert in rows if alert.all_labels.get(name) == value]


def _check(name: str, values: list[str], known: Sequence[str]) -> None:
    unknown = [value for value in values if value not in known]
    if unknown:
        raise Invalid({name: [f"{value!r} is none of: {', '.join(known)}." for value in unknown]})
