"""SLOs: the targets of workloads, and how far they are met."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.problem_schema import PROBLEMS
from controlplane.slos import selectors, services
from controlplane.slos.models import Slo

_TAG = ["slos"]


_PERCENTILE = "Per cent of the requests that are to meet it; the rest is the error budget."


class TargetAttainmentSerializer(serializers.Serializer[Any]):
    """One target in one window."""

    attainment = serializers.FloatField(allow_null=True, help_text="Share of requests within the target, 0..1.")
    burn_rate = serializers.FloatField(allow_null=True, help_text="1 uses the error budget up exactly.")
    met = serializers.BooleanField(allow_null=True)


class WindowAttainmentSerializer(serializers.Serializer[Any]):
    """One window."""

    window = serializers.CharField()
    requests = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # declared fields leave the class
    ttft = TargetAttainmentSerializer(allow_null=True)
    tpot = TargetAttainmentSerializer(allow_null=True)
    goodput_per_s = serializers.FloatField(help_text="Requests a second that met every target, at least.")


class SloSerializer(serializers.ModelSerializer[Slo]):
    """The targets of a workload, and how far they are met."""

    workload = serializers.CharField(source="workload.name")
    attainment = serializers.SerializerMethodField()

    class Meta:
        model = Slo
        fields = [
            "workload",
            "ttft_s",
            "ttft_percentile",
            "tpot_s",
            "tpot_percentile",
            "attainment",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(WindowAttainmentSerializer(many=True))
    def get_attainment(self, slo: Slo) -> list[dict[str, Any]]:
        """Look the windows up, gathered once for a whole list."""
        found: Mapping[int, list[Any]] = self.context["attainment"]
        return [asdict(window) for window in found[slo.pk]]


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Two seconds for most", value={"ttft_s": 2.0, "ttft_percentile": 95, "tpot_s": 0.05}, request_only=True
        )
    ]
)
class SloSettingsSerializer(serializers.Serializer[Any]):
    """Targets; at least one of the durations."""

    ttft_s = serializers.FloatField(
        allow_null=True, default=None, help_text="Time to first token in seconds; none is no target."
    )
    ttft_percentile = serializers.FloatField(default=95.0, help_text=_PERCENTILE)
    tpot_s = serializers.FloatField(
        allow_null=True, default=None, help_text="Time an output token in seconds; none is no target."
    )
    tpot_percentile = serializers.FloatField(default=95.0, help_text=_PERCENTILE)


class SloView(GenericAPIView[Slo]):
    """What all views of SLOs share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = SloSerializer
    queryset = Slo.objects.none()

    def shown(self, slo: Slo, status: int = 200) -> Response:
        """Answer with an SLO as it stands."""
        context = {"attainment": selectors.attainment_of([slo])}
        return Response(SloSerializer(slo, context=context).data, status=status)


class Slos(SloView):
    """The list."""

    @extend_schema(responses={200: SloSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="slos_list")
    def get(self, request: Request) -> Response:
        """List the SLOs and how far they are met, by workload."""
        page = self.paginate_queryset(selectors.slos()) or []
        context = {"attainment": selectors.attainment_of(page)}
        return self.get_paginated_response(SloSerializer(page, many=True, context=context).data)


class SloDetail(SloView):
    """The SLO of one workload."""

    @extend_schema(responses={200: SloSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, workload: str) -> Response:
        """Show the SLO of a workload."""
        return self.shown(selectors.slo_of(workload))

    @extend_schema(
        request=SloSettingsSerializer, responses={200: SloSerializer, 201: SloSerializer} | PROBLEMS.change, tags=_TAG
    )
    def put(self, request: Request, workload: str) -> Response:
        """Give a workload these targets."""
        sent = SloSettingsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        slo, created = services.put_slo(actor=request_actor(request), workload=workload, **sent.validated_data)
        return self.shown(slo, 201 if created else 200)

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, workload: str) -> Response:
        """Take the targets of a workload away."""
        services.delete_slo(actor=request_actor(request), workload=workload)
        return Response(status=204)
