"""Admission: what happens when the fleet is full."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.admission.models import AdmissionSettings
from controlplane.admission.selectors import admission
from controlplane.admission.services import MOST_REQUESTS, MOST_WAIT_S, set_admission
from controlplane.api.if_match import IF_MATCH, expected_revision
from controlplane.field_docs import field_docs
from controlplane.problem_schema import PROBLEMS
from router.config import AdmissionConfig

_TAG = ["admission"]
_STANDARD = AdmissionConfig()
_HELP = field_docs(AdmissionConfig)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Eight at each instance, then wait for ten seconds",
            value={"instance_requests": 8, "queue_requests": 200, "queue_wait_s": 10},
            request_only=True,
        )
    ]
)
class AdmissionRuleSerializer(serializers.Serializer[Any]):
    """The settings as a whole; what is left out has its default."""

    instance_requests = serializers.IntegerField(
        min_value=1,
        max_value=MOST_REQUESTS,
        allow_null=True,
        default=_STANDARD.instance_requests,
        help_text=_HELP["instance_requests"],
    )
    queue_requests = serializers.IntegerField(
        min_value=1, max_value=MOST_REQUESTS, default=_STANDARD.queue_requests, help_text=_HELP["queue_requests"]
    )
    queue_wait_s = serializers.FloatField(
        max_value=MOST_WAIT_S, default=_STANDARD.queue_wait_s, help_text=_HELP["queue_wait_s"]
    )
    batch_window_ms = serializers.FloatField(
        min_value=0, max_value=10, default=_STANDARD.batch_window_ms, help_text=_HELP["batch_window_ms"]
    )


class AdmissionSerializer(serializers.ModelSerializer[AdmissionSettings]):
    """The settings, and who made them so."""

    class Meta:
        model = AdmissionSettings
        fields = [
            "revision",
            "instance_requests",
            "queue_requests",
            "queue_wait_s",
            "batch_window_ms",
            "updated_at",
            "updated_by",
        ]
        read_only_fields = fields


class Admission(GenericAPIView[AdmissionSettings]):
    """The one row of settings."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = AdmissionSerializer
    queryset = AdmissionSettings.objects.none()
    pagination_class = None

    @extend_schema(responses={200: AdmissionSerializer} | PROBLEMS.read, tags=_TAG, operation_id="admission_retrieve")
    def get(self, request: Request) -> Response:
        """Show when requests wait and when they are refused; the `ETag` is for changing it."""
        return _shown(admission())

    @extend_schema(
        request=AdmissionRuleSerializer,
        parameters=[IF_MATCH],
        responses={200: AdmissionSerializer} | PROBLEMS.change,
        tags=_TAG,
        operation_id="admission_update",
    )
    def put(self, request: Request) -> Response:
        """Set all of it; routers follow within moments."""
        sent = AdmissionRuleSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        rule = AdmissionConfig(**sent.validated_data)
        expected = expected_revision(request)
        return _shown(set_admission(actor=request_actor(request), rule=rule, expected=expected))


def _shown(row: AdmissionSettings) -> Response:
    return Response(AdmissionSerializer(row).data, headers={"ETag": f'"{row.revision}"'})
