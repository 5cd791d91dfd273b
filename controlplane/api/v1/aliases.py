"""Aliases: names that clients may use for models."""

from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.aliases import selectors, services
from controlplane.aliases.models import ModelAlias
from controlplane.api.v1.aliases_serializers import AliasSerializer, AliasSettingsSerializer
from controlplane.errors import Invalid
from controlplane.fleet.selectors import models_in_rotation
from controlplane.problem_schema import PROBLEMS

_TAG = ["aliases"]
_ORDERING = tuple(sign + name for name in ("name", "created_at", "updated_at") for sign in ("", "-"))
_PARAMETERS = [
    OpenApiParameter("model", str, description="Leads to this model."),
    OpenApiParameter("search", str, description="Part of the name."),
    OpenApiParameter("ordering", str, enum=list(_ORDERING), description="`name` by default; `-` turns it round."),
]


class AliasView(GenericAPIView[ModelAlias]):
    """What all views of aliases share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = AliasSerializer
    queryset = ModelAlias.objects.none()

    def shown(self, alias: ModelAlias, status: int = 200) -> Response:
        """Answer with an alias as it stands."""
        return Response(AliasSerializer(alias, context={"models": models_in_rotation()}).data, status=status)


class Aliases(AliasView):
    """The list."""

    @extend_schema(
        parameters=_PARAMETERS,
        responses={200: AliasSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="aliases_list",
    )
    def get(self, request: Request) -> Response:
        """List aliases, filtered, ordered and in pages."""
        page = self.paginate_queryset(_filtered(selectors.aliases(), request.query_params))
        context = {"models": models_in_rotation()}
        return self.get_paginated_response(AliasSerializer(page, many=True, context=context).data)


class AliasDetail(AliasView):
    """One alias; its name may have slashes, as names of models do."""

    @extend_schema(responses={200: AliasSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show an alias."""
        return self.shown(selectors.alias_named(name))

    @extend_schema(
        request=AliasSettingsSerializer,
        responses={200: AliasSerializer, 201: AliasSerializer} | PROBLEMS.change,
        tags=_TAG,
    )
    def put(self, request: Request, name: str) -> Response:
        """Make an alias of this name, or make it be as said; the same again changes nothing."""
        sent = AliasSettingsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        alias, created = services.put_alias(
            actor=request_actor(request),
            name=name,
            targets=sent.split(),
            description=sent.validated_data["description"],
        )
        return self.shown(alias, 201 if created else 200)

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str) -> Response:
        """Delete an alias; who still uses the name is told that there is no such model."""
        services.delete_alias(actor=request_actor(request), name=name)
        return Response(status=204)


def _filtered(rows: QuerySet[ModelAlias], query: QueryDict) -> QuerySet[ModelAlias]:
    """Return the rows that a query asks for, in its order.

    :raises Invalid: for an order that there is not.
    """
    if model := query.get("model"):
        rows = rows.filter(pk__in=[alias.pk for alias in selectors.leading_to(model)])
    if search := query.get("search"):
        rows = rows.filter(name__icontains=search)
    ordering = query.get("ordering", "name")
    if ordering not in _ORDERING:
        raise Invalid({"ordering": [f"{ordering!r} is none of: {', '.join(_ORDERING)}."]})
    return rows.order_by(ordering, "pk")
