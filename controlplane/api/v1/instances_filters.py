"""Filters and orders of the list of instances."""

from collections.abc import Sequence

from django.db.models import Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from controlplane.errors import Invalid
from controlplane.fleet.models import Instance, InstanceRole
from router.core.instance import InstanceState

_ORDERS = ("name", "state", "created_at", "state_since", "hardware")
ORDERING = tuple(sign + name for name in _ORDERS for sign in ("", "-"))
_STATES = [s.value for s in InstanceState if s is not InstanceState.REMOVED]
PARAMETERS = [
    OpenApiParameter("state", str, many=True, enum=_STATES, description="Any of these states."),
    OpenApiParameter("model", str, description="Serves this model."),
    OpenApiParameter("role", str, enum=InstanceRole.values),
    OpenApiParameter("hardware", str),
    OpenApiParameter("label", str, many=True, description="`key=value`; all must hold."),
    OpenApiParameter("search", str, description="Part of the name or the URL."),
    OpenApiParameter("ordering", str, enum=list(ORDERING), description="`name` by default; `-` turns it round."),
]


def filtered(rows: QuerySet[Instance], query: QueryDict) -> QuerySet[Instance]:
    """Return the rows that a query asks for, in its order.

    :raises Invalid: for a value that cannot be.
    """
    if states := query.getlist("state"):
        _check("state", states, _STATES)
        rows = rows.filter(state__in=states)
    if role := query.get("role"):
        _check("role", [role], InstanceRole.values)
        rows = rows.filter(role=role)
    if hardware := query.get("hardware"):
        rows = rows.filter(hardware=hardware)
    if search := query.get("search"):
        rows = rows.filter(Q(name__icontains=search) | Q(url__icontains=search))
    for label in query.getlist("label"):
        key, equals, value = label.partition("=")
        if not key or not equals:
            raise Invalid({"label": [f"{label!r} is not of the form key=value."]})
        rows = rows.filter(pk__in=[r.pk for r in rows if r.labels.get(key) == value])
    if model := query.get("model"):
        rows = rows.filter(pk__in=[r.pk for r in rows if not r.served_models or model in r.served_models])
    ordering = query.get("ordering", "name")
    _check("ordering", [ordering], ORDERING)
    return rows.order_by(ordering, "pk")


def _check(name: str, values: list[str], known: Sequence[str]) -> None:
    unknown = [value for value in values if value not in known]
    if unknown:
        raise Invalid({name: [f"{value!r} is none of: {', '.join(known)}." for value in unknown]})
