"""The audit log."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts import selectors
from controlplane.accounts.access import Scope
from controlplane.accounts.models import AuditEntry
from controlplane.problem_schema import PROBLEMS

_FILTERS = ("actor", "action", "object_type", "object_id", "object_name")


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One change."""

    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)

    class Meta:
        model = AuditEntry
        fields = [
            "id",
            "at",
            "actor",
            "action",
            "object_type",
            "object_id",
            "object_name",
            "before",
            "after",
            "message",
        ]
        read_only_fields = fields


class AuditLog(GenericAPIView[AuditEntry]):
    """Every change, newest first."""

    read_scope = Scope.READ
    serializer_class = AuditEntrySerializer
    queryset = AuditEntry.objects.none()

    @extend_schema(
        parameters=[OpenApiParameter(name, str) for name in _FILTERS],
        responses={200: AuditEntrySerializer(many=True)} | PROBLEMS.read,
        tags=["audit"],
        operation_id="audit_list",
    )
    def get(self, request: Request) -> Response:
        """List changes, newest first."""
        wanted = {name: value for name in _FILTERS if (value := request.query_params.get(name))}
        page = self.paginate_queryset(selectors.audit_entries().filter(**wanted))
        return self.get_paginated_response(AuditEntrySerializer(page, many=True).data)
