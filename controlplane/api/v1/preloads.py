"""Preloads: what is brought to which instance, and who keeps out of it."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.models import Tenant
from controlplane.accounts.permissions import request_actor
from controlplane.errors import Invalid, NotFound
from controlplane.preloading import selectors
from controlplane.preloading.lifecycle import PreloadState
from controlplane.preloading.models import Preload, Reason
from controlplane.preloading.services import set_keep_prefixes
from controlplane.problem_schema import PROBLEMS

_TAG = ["preloads"]
_STATES = [state.value for state in PreloadState]
_FILTERS = [OpenApiParameter("state", str, enum=_STATES), OpenApiParameter("instance", str, description="Its name.")]


class PreloadSerializer(serializers.ModelSerializer[Preload]):
    """One prefix class for one instance."""

    state = serializers.ChoiceField(choices=_STATES)
    reason = serializers.ChoiceField(choices=Reason.values)
    instance = serializers.CharField(  # type: ignore[assignment]  # declared fields leave the class
        source="instance_name"
    )

    class Meta:
        model = Preload
        fields = [
            "id",
            "class_id",
            "instance",
            "epoch",
            "reason",
            "state",
            "attempts",
            "detail",
            "prompt_tokens",
            "cached_tokens",
            "created_at",
            "ended_at",
        ]
        read_only_fields = fields


@extend_schema_serializer(examples=[OpenApiExample("Not kept", value={"keep_prefixes": False}, request_only=True)])
class KeepPrefixesSerializer(serializers.Serializer[Any]):
    """Whether the beginnings of a tenant's prompts may be kept in routers' memory."""

    keep_prefixes = serializers.BooleanField()


class Preloads(GenericAPIView[Preload]):
    """The last day's preloads."""

    read_scope = Scope.READ
    serializer_class = PreloadSerializer
    queryset = Preload.objects.none()

    @extend_schema(
        parameters=_FILTERS,
        responses={200: PreloadSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="preloads_list",
    )
    def get(self, request: Request) -> Response:
        """List preloads, newest first."""
        rows = selectors.preloads()
        if state := request.query_params.get("state"):
            if state not in _STATES:
                raise Invalid({"state": [f"{state!r} is none of: {', '.join(_STATES)}."]})
            rows = rows.filter(state=state)
        if name := request.query_params.get("instance"):
            rows = rows.filter(instance_name=name)
        return self.get_paginated_response(PreloadSerializer(self.paginate_queryset(rows), many=True).data)


class TenantPrefixes(GenericAPIView[Tenant]):
    """The choice of one tenant."""

    read_scope = Scope.READ
    write_scope = Scope.TENANTS
    serializer_class = KeepPrefixesSerializer
    queryset = Tenant.objects.none()

    @extend_schema(responses={200: KeepPrefixesSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Say whether the beginnings of a tenant's prompts may be kept."""
        return _shown(_tenant(name))

    @extend_schema(request=KeepPrefixesSerializer, responses={200: KeepPrefixesSerializer} | PROBLEMS.change, tags=_TAG)
    def put(self, request: Request, name: str) -> Response:
        """Allow or forbid it; forbidden, routers forget at once what they keep."""
        sent = KeepPrefixesSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        tenant = _tenant(name)
        set_keep_prefixes(actor=request_actor(request), tenant=tenant, keep=sent.validated_data["keep_prefixes"])
        return _shown(tenant)


def _tenant(name: str) -> Tenant:
    tenant = Tenant.objects.filter(name=name).first()
    if tenant is None:
        raise NotFound(f"There is no tenant named {name}.")
    return tenant


def _shown(tenant: Tenant) -> Response:
    return Response({"keep_prefixes": tenant.name not in selectors.opted_out()})
