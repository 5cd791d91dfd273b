"""Silences: made, tried beforehand, ended."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.alerts import selectors
from controlplane.alerts.matchers import parse_matchers
from controlplane.alerts.models import Silence
from controlplane.alerts.services.silencing import end_silence, silence
from controlplane.api.v1.alerts_serializers import (
    AlertSerializer,
    MatchersSerializer,
    NewSilenceSerializer,
    PreviewSerializer,
    SilenceSerializer,
)
from controlplane.errors import NotFound
from controlplane.problem_schema import PROBLEMS

_TAG = ["silences"]
_ACTIVE = OpenApiParameter("active", bool, description="Only those that hold now.")
_SHOWN = 100


class SilenceView(GenericAPIView[Silence]):
    """What all views of silences share."""

    read_scope = Scope.READ
    write_scope = Scope.ALERTS
    serializer_class = SilenceSerializer
    queryset = Silence.objects.none()


class Silences(SilenceView):
    """The list, and new ones."""

    @extend_schema(
        parameters=[_ACTIVE],
        responses={200: SilenceSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="silences_list",
    )
    def get(self, request: Request) -> Response:
        """List silences, those that end last first."""
        rows = selectors.silences()
        if request.query_params.get("active", "false").lower() in {"true", "1"}:
            rows = rows.filter(pk__in=[row.pk for row in selectors.active_silences()])
        return self.get_paginated_response(SilenceSerializer(self.paginate_queryset(rows), many=True).data)

    @extend_schema(request=NewSilenceSerializer, responses={201: SilenceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Silence alerts that match, until an end."""
        sent = NewSilenceSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        values = dict(sent.validated_data)
        values["matchers"] = parse_matchers([dict(matcher) for matcher in values["matchers"]])
        return Response(SilenceSerializer(silence(actor=request_actor(request), **values)).data, status=201)


class SilencePreview(SilenceView):
    """Trying matchers."""

    write_scope = Scope.READ

    @extend_schema(request=MatchersSerializer, responses={200: PreviewSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Show the open alerts that matchers match; nothing is changed."""
        sent = MatchersSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        matchers = parse_matchers([dict(matcher) for matcher in sent.validated_data["matchers"]])
        found = selectors.matched(matchers)
        context = {"silences": selectors.active_silences()}
        return Response(
            {"count": len(found), "alerts": AlertSerializer(found[:_SHOWN], many=True, context=context).data}
        )


class SilenceDetail(SilenceView):
    """One silence."""

    @extend_schema(responses={200: SilenceSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, silence_id: str) -> Response:
        """Show a silence."""
        found = selectors.silences().filter(pk=silence_id).first()
        if found is None:
            raise NotFound("There is no such silence.")
        return Response(SilenceSerializer(found).data)

    @extend_schema(responses={200: SilenceSerializer} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, silence_id: str) -> Response:
        """End a silence now; its row stays, as a record."""
        return Response(SilenceSerializer(end_silence(actor=request_actor(request), silence_id=silence_id)).data)
