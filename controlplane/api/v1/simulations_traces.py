"""Traces to simulate on: uploaded, or recorded by a router worker."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.v1.simulations_serializers import (
    RecordingNameSerializer,
    RecordingSerializer,
    TraceSerializer,
    TraceUploadSerializer,
)
from controlplane.lab import selectors
from controlplane.lab.models import Trace
from controlplane.lab.recordings import recordings
from controlplane.lab.services import traces
from controlplane.problem_schema import PROBLEMS

_TAG = ["simulations"]


class TraceView(GenericAPIView[Trace]):
    """What all views of traces share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = TraceSerializer
    queryset = Trace.objects.none()


class Traces(TraceView):
    """The list, and uploads."""

    parser_classes = [MultiPartParser]

    @extend_schema(
        responses={200: TraceSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="simulation_traces_list"
    )
    def get(self, request: Request) -> Response:
        """List traces, newest first."""
        return self.get_paginated_response(TraceSerializer(self.paginate_queryset(selectors.traces()), many=True).data)

    @extend_schema(request=TraceUploadSerializer, responses={201: TraceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Upload a trace file, plain or gzip; a fault is named by its line."""
        sent = TraceUploadSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        file = sent.validated_data["file"]
        name = sent.validated_data.get("name") or file.name
        kept = traces.take_in(actor=request_actor(request), name=name, chunks=file.chunks())
        return Response(TraceSerializer(kept).data, status=201)


class TraceDetail(TraceView):
    """One trace."""

    @extend_schema(responses={200: TraceSerializer} | PROBLEMS.read, tags=_TAG, operation_id="simulation_trace")
    def get(self, request: Request, trace_id: str) -> Response:
        """Show a trace."""
        return Response(TraceSerializer(selectors.trace(trace_id)).data)

    @extend_schema(
        responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change,
        tags=_TAG,
        operation_id="simulation_trace_delete",
    )
    def delete(self, request: Request, trace_id: str) -> Response:
        """Delete a trace; results that it gave stay."""
        traces.delete_trace(actor=request_actor(request), trace_id=trace_id)
        return Response(status=204)


class Recordings(GenericAPIView[Trace]):
    """What router workers recorded."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    queryset = Trace.objects.none()
    serializer_class = RecordingSerializer
    pagination_class = None

    @extend_schema(
        responses={200: RecordingSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="simulation_recordings_list",
    )
    def get(self, request: Request) -> Response:
        """List recordings in the data directory's folder `recordings`, newest first."""
        return Response(RecordingSerializer(recordings(), many=True).data)

    @extend_schema(
        request=RecordingNameSerializer,
        responses={201: TraceSerializer} | PROBLEMS.change,
        tags=_TAG,
        operation_id="simulation_recording_take",
    )
    def post(self, request: Request) -> Response:
        """Take in what a recording holds so far, as a trace."""
        sent = RecordingNameSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        kept = traces.take_recording(actor=request_actor(request), name=sent.validated_data["name"])
        return Response(TraceSerializer(kept).data, status=201)
