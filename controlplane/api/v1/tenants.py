"""Tenants: limits, keys for inference, and what was used."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts import selectors
from controlplane.accounts.access import Scope
from controlplane.accounts.models import InferenceKey, Tenant, TenantUsage
from controlplane.accounts.permissions import request_actor
from controlplane.accounts.services import tenants
from controlplane.problem_schema import PROBLEMS

_TAG = ["tenants"]
_MOST = 2**31 - 1


class TenantSerializer(serializers.ModelSerializer[Tenant]):
    """A tenant."""

    class Meta:
        model = Tenant
        fields = [
            "id",
            "name",
            "description",
            "active",
            "tokens_per_minute",
            "requests_per_minute",
            "concurrent",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


@extend_schema_serializer(
    examples=[OpenApiExample("A higher limit", value={"tokens_per_minute": 200000}, request_only=True)]
)
class TenantChangeSerializer(serializers.Serializer[Any]):
    """What may be set; a limit of null is none."""

    description = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, help_text="For people; nothing reads it."
    )
    active = serializers.BooleanField(required=False, help_text="The keys of a tenant that is not are refused.")
    tokens_per_minute = serializers.IntegerField(
        min_value=1,
        max_value=_MOST,
        allow_null=True,
        required=False,
        help_text="Prompt and output tokens of all its keys together, over all workers; none is no limit.",
    )
    requests_per_minute = serializers.IntegerField(
        min_value=1,
        max_value=_MOST,
        allow_null=True,
        required=False,
        help_text="Requests of all its keys together; beyond them it is told when to come again.",
    )
    concurrent = serializers.IntegerField(
        min_value=1,
        max_value=_MOST,
        allow_null=True,
        required=False,
        help_text="Requests of all its keys that may be under way at one time; none is no limit.",
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A team",
            value={"name": "search", "tokens_per_minute": 100000, "requests_per_minute": 600, "concurrent": 32},
            request_only=True,
        )
    ]
)
class NewTenantSerializer(TenantChangeSerializer):
    """A tenant to be made."""

    name = serializers.CharField(max_length=64, help_text="1 to 64 letters, digits or . _ -. It stays as it is.")


class KeySerializer(serializers.ModelSerializer[InferenceKey]):
    """A key, without its text."""

    class Meta:
        model = InferenceKey
        fields = ["id", "name", "prefix", "created_by", "created_at", "expires_at", "revoked_at"]
        read_only_fields = fields


@extend_schema_serializer(examples=[OpenApiExample("For production", value={"name": "production"}, request_only=True)])
class NewKeySerializer(serializers.Serializer[Any]):
    """A key to be made."""

    name = serializers.CharField(max_length=100, help_text="To tell it from the tenant's other keys.")
    expires_at = serializers.DateTimeField(allow_null=True, default=None)


class MadeKeySerializer(KeySerializer):
    """A key that was just made, with its text, which is shown this once."""

    key = serializers.CharField()

    class Meta(KeySerializer.Meta):
        fields = [*KeySerializer.Meta.fields, "key"]
        read_only_fields = fields


class UsageSerializer(serializers.ModelSerializer[TenantUsage]):
    """What was used of one workload in one hour."""

    class Meta:
        model = TenantUsage
        fields = ["hour", "workload", "requests", "refused", "prompt_tokens", "output_tokens"]
        read_only_fields = fields


class Tenants(GenericAPIView[Tenant]):
    """The list, and new ones."""

    read_scope = Scope.READ
    write_scope = Scope.TENANTS
    serializer_class = TenantSerializer
    queryset = Tenant.objects.none()

    @extend_schema(responses={200: TenantSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="tenants_list")
    def get(self, request: Request) -> Response:
        """List tenants, by name."""
        page = self.paginate_queryset(selectors.tenants())
        return self.get_paginated_response(TenantSerializer(page, many=True).data)

    @extend_schema(request=NewTenantSerializer, responses={201: TenantSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a tenant."""
        sent = NewTenantSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        made = tenants.create_tenant(actor=request_actor(request), **sent.validated_data)
        return Response(TenantSerializer(made).data, status=201)


class TenantDetail(GenericAPIView[Tenant]):
    """One tenant."""

    read_scope = Scope.READ
    write_scope = Scope.TENANTS
    serializer_class = TenantSerializer
    queryset = Tenant.objects.none()

    @extend_schema(responses={200: TenantSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show a tenant."""
        return Response(TenantSerializer(selectors.tenant_named(name)).data)

    @extend_schema(request=TenantChangeSerializer, responses={200: TenantSerializer} | PROBLEMS.change, tags=_TAG)
    def patch(self, request: Request, name: str) -> Response:
        """Change a tenant; routers follow within moments."""
        sent = TenantChangeSerializer(data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        changed = tenants.change_tenant(actor=request_actor(request), name=name, **sent.validated_data)
        return Response(TenantSerializer(changed).data)

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str) -> Response:
        """Delete a tenant and its keys; what it used stays on record."""
        tenants.delete_tenant(actor=request_actor(request), name=name)
        return Response(status=204)


class TenantKeys(GenericAPIView[InferenceKey]):
    """Keys for inference."""

    read_scope = Scope.READ
    write_scope = Scope.TENANTS
    serializer_class = KeySerializer
    queryset = InferenceKey.objects.none()

    @extend_schema(
        responses={200: KeySerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="tenant_keys_list"
    )
    def get(self, request: Request, name: str) -> Response:
        """List a tenant's keys, newest first."""
        page = self.paginate_queryset(selectors.tenant_named(name).keys.all())
        return self.get_paginated_response(KeySerializer(page, many=True).data)

    @extend_schema(request=NewKeySerializer, responses={201: MadeKeySerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Make a key; its text is in the answer, and never again."""
        sent = NewKeySerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        key, text = tenants.create_key(actor=request_actor(request), tenant=name, **sent.validated_data)
        return Response({**KeySerializer(key).data, "key": text}, status=201)


class TenantKeyDetail(GenericAPIView[InferenceKey]):
    """One key."""

    read_scope = Scope.READ
    write_scope = Scope.TENANTS
    serializer_class = KeySerializer
    queryset = InferenceKey.objects.none()

    @extend_schema(responses={200: KeySerializer} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str, key_id: str) -> Response:
        """Revoke a key; routers refuse it within moments."""
        key = tenants.revoke_key(actor=request_actor(request), tenant=name, key_id=key_id)
        return Response(KeySerializer(key).data)


class TenantUse(GenericAPIView[TenantUsage]):
    """What was used."""

    read_scope = Scope.READ
    serializer_class = UsageSerializer
    queryset = TenantUsage.objects.none()

    @extend_schema(
        responses={200: UsageSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="tenant_usage_list"
    )
    def get(self, request: Request, name: str) -> Response:
        """List what a tenant used, by workload and hour, newest first."""
        page = self.paginate_queryset(selectors.usage(selectors.tenant_named(name).name))
        return self.get_paginated_response(UsageSerializer(page, many=True).data)
