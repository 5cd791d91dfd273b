"""Alerts: listed, explained, acknowledged, resolved, assigned, commented on."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.alerts import selectors
from controlplane.alerts.models import Alert
from controlplane.alerts.services import handling
from controlplane.api.v1 import alerts_filters
from controlplane.api.v1.alerts_serializers import (
    AcknowledgementSerializer,
    AlertDetailSerializer,
    AlertSerializer,
    AssignmentSerializer,
    BulkResultSerializer,
    BulkSerializer,
    CommentSerializer,
    ResolutionSerializer,
)
from controlplane.problem_schema import PROBLEMS

_TAG = ["alerts"]
_DETAIL = {200: AlertDetailSerializer} | PROBLEMS.change


class AlertView(GenericAPIView[Alert]):
    """What all views of alerts share."""

    read_scope = Scope.READ
    write_scope = Scope.ALERTS
    serializer_class = AlertSerializer
    queryset = Alert.objects.none()

    def shown(self, alert_id: object) -> Response:
        """Answer with an alert as it stands now."""
        alert = selectors.alert(str(alert_id))
        context = {"silences": selectors.active_silences()}
        return Response(AlertDetailSerializer(alert, context=context).data)

    def sent(self, request: Request, serializer: type[Any]) -> dict[str, Any]:
        """Return what a request carries, checked."""
        read = serializer(data=request.data or {})
        read.is_valid(raise_exception=True)
        values: dict[str, Any] = read.validated_data
        return values


class Alerts(AlertView):
    """The list."""

    @extend_schema(
        parameters=alerts_filters.PARAMETERS,
        responses={200: AlertSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="alerts_list",
    )
    def get(self, request: Request) -> Response:
        """List alerts, filtered, ordered and in pages; newest first."""
        page = self.paginate_queryset(alerts_filters.filtered(selectors.alerts(), request.query_params))
        context = {"silences": selectors.active_silences()}
        return self.get_paginated_response(AlertSerializer(page, many=True, context=context).data)


class AlertDetail(AlertView):
    """One alert."""

    @extend_schema(responses={200: AlertDetailSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, alert_id: str) -> Response:
        """Show an alert with its timeline, what it means and what to do."""
        return self.shown(alert_id)


class AlertAcknowledge(AlertView):
    """Promising to look after it."""

    @extend_schema(request=AcknowledgementSerializer, responses=_DETAIL, tags=_TAG)
    def post(self, request: Request, alert_id: str) -> Response:
        """Acknowledge an alert, perhaps until a time at which it fires again."""
        values = self.sent(request, AcknowledgementSerializer)
        handling.acknowledge(actor=request_actor(request), alert_id=alert_id, **values)
        return self.shown(alert_id)


class AlertResolve(AlertView):
    """Saying that it is over."""

    @extend_schema(request=ResolutionSerializer, responses=_DETAIL, tags=_TAG)
    def post(self, request: Request, alert_id: str) -> Response:
        """Resolve an alert; evidence that goes on brings it back."""
        values = self.sent(request, ResolutionSerializer)
        handling.resolve(actor=request_actor(request), alert_id=alert_id, **values)
        return self.shown(alert_id)


class AlertAssign(AlertView):
    """Giving it to somebody."""

    @extend_schema(request=AssignmentSerializer, responses=_DETAIL, tags=_TAG)
    def post(self, request: Request, alert_id: str) -> Response:
        """Assign an alert to a person, or to nobody."""
        username = self.sent(request, AssignmentSerializer)["assignee"]
        handling.assign(actor=request_actor(request), alert_id=alert_id, username=username)
        return self.shown(alert_id)


class AlertComment(AlertView):
    """Talking about it."""

    @extend_schema(request=CommentSerializer, responses=_DETAIL, tags=_TAG)
    def post(self, request: Request, alert_id: str) -> Response:
        """Add a comment to the timeline."""
        text = self.sent(request, CommentSerializer)["text"]
        handling.comment(actor=request_actor(request), alert_id=alert_id, text=text)
        return self.shown(alert_id)


class AlertBulk(AlertView):
    """Many at once."""

    @extend_schema(request=BulkSerializer, responses={200: BulkResultSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Do one thing to many alerts; each succeeds or is refused on its own."""
        values = self.sent(request, BulkSerializer)
        actor, ids = request_actor(request), values["alerts"]
        match values["action"]:
            case "acknowledge":
                more = {"until": values["until"], "comment": values["comment"]}
                refused = handling.each(handling.acknowledge, ids, actor=actor, **more)
            case "resolve":
                refused = handling.each(handling.resolve, ids, actor=actor, comment=values["comment"])
            case "assign":
                refused = handling.each(handling.assign, ids, actor=actor, username=values["assignee"])
            case _:
                refused = handling.each(handling.comment, ids, actor=actor, text=values["comment"])
        return Response({"done": len(set(ids)) - len(refused), "refused": refused})
