"""Workloads: which traffic is routed by which policy."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.v1.policies_serializers import (
    NewWorkloadSerializer,
    ShadowHourSerializer,
    WorkloadChangeSerializer,
    WorkloadSerializer,
)
from controlplane.policies import selectors
from controlplane.policies.models import ShadowHour, Workload
from controlplane.policies.services import workloads
from controlplane.problem_schema import PROBLEMS

_TAG = ["workloads"]


class WorkloadView(GenericAPIView[Workload]):
    """What all views of workloads share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = WorkloadSerializer
    queryset = Workload.objects.none()


class Workloads(WorkloadView):
    """The list, and new ones."""

    @extend_schema(
        responses={200: WorkloadSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="workloads_list"
    )
    def get(self, request: Request) -> Response:
        """List workloads in the order in which their rules are tried."""
        page = self.paginate_queryset(selectors.workloads())
        return self.get_paginated_response(WorkloadSerializer(page, many=True).data)

    @extend_schema(request=NewWorkloadSerializer, responses={201: WorkloadSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a workload."""
        sent = NewWorkloadSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        made = workloads.create_workload(actor=request_actor(request), **sent.validated_data)
        return Response(WorkloadSerializer(made).data, status=201)


class WorkloadDetail(WorkloadView):
    """One workload."""

    @extend_schema(responses={200: WorkloadSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show a workload."""
        return Response(WorkloadSerializer(selectors.workload_named(name)).data)

    @extend_schema(request=WorkloadChangeSerializer, responses={200: WorkloadSerializer} | PROBLEMS.change, tags=_TAG)
    def patch(self, request: Request, name: str) -> Response:
        """Change a workload."""
        sent = WorkloadChangeSerializer(data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        changed = workloads.change_workload(actor=request_actor(request), name=name, **sent.validated_data)
        return Response(WorkloadSerializer(changed).data)

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str) -> Response:
        """Delete a workload; the default one stays."""
        workloads.delete_workload(actor=request_actor(request), name=name)
        return Response(status=204)


class WorkloadShadow(GenericAPIView[ShadowHour]):
    """The shadow policy."""

    read_scope = Scope.READ
    serializer_class = ShadowHourSerializer
    queryset = ShadowHour.objects.none()

    @extend_schema(
        responses={200: ShadowHourSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="workload_shadow_list"
    )
    def get(self, request: Request, name: str) -> Response:
        """List how often the workload's shadow policy would have gone elsewhere, by hour, newest first."""
        page = self.paginate_queryset(selectors.shadow_hours(name))
        return self.get_paginated_response(ShadowHourSerializer(page, many=True).data)
