"""Channels: made, changed, tested, disabled, and what was delivered."""

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.alerts import selectors
from controlplane.alerts.matchers import parse_matchers
from controlplane.alerts.models import Channel, ChannelKind, Delivery
from controlplane.alerts.services import channels
from controlplane.api.v1.alerts_serializers import (
    ChannelSerializer,
    DeliverySerializer,
    DisableSerializer,
    NewChannelSerializer,
)
from controlplane.problem_schema import PROBLEMS

_TAG = ["channels"]
_ONE = {200: ChannelSerializer} | PROBLEMS.change


class ChannelView(GenericAPIView[Channel]):
    """What all views of channels share."""

    read_scope = Scope.READ
    write_scope = Scope.ALERTS
    serializer_class = ChannelSerializer
    queryset = Channel.objects.none()

    def spec(self, request: Request) -> channels.ChannelSpec:
        """Return what a request wants a channel to be."""
        sent = NewChannelSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        values: dict[str, Any] = sent.validated_data
        return channels.ChannelSpec(
            name=values["name"],
            kind=ChannelKind(values["kind"]),
            settings=values["settings"],
            matchers=parse_matchers([dict(matcher) for matcher in values["matchers"]]),
        )


class Channels(ChannelView):
    """The list, and new ones."""

    @extend_schema(
        responses={200: ChannelSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="channels_list"
    )
    def get(self, request: Request) -> Response:
        """List channels, by name; secrets are never shown."""
        page = self.paginate_queryset(selectors.channels())
        return self.get_paginated_response(ChannelSerializer(page, many=True).data)

    @extend_schema(request=NewChannelSerializer, responses={201: ChannelSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a channel; it is told of what fires now."""
        made = channels.create_channel(actor=request_actor(request), spec=self.spec(request))
        return Response(ChannelSerializer(made).data, status=201)


class ChannelDetail(ChannelView):
    """One channel."""

    @extend_schema(responses={200: ChannelSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, channel_id: str) -> Response:
        """Show a channel."""
        return Response(ChannelSerializer(selectors.channel(channel_id)).data)

    @extend_schema(request=NewChannelSerializer, responses=_ONE, tags=_TAG)
    def put(self, request: Request, channel_id: str) -> Response:
        """Change a channel; secrets that are left out stay."""
        changed = channels.change_channel(actor=request_actor(request), channel_id=channel_id, spec=self.spec(request))
        return Response(ChannelSerializer(changed).data)

    @extend_schema(responses={204: OpenApiResponse(description="Removed.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, channel_id: str) -> Response:
        """Remove a channel with its delivery log."""
        channels.remove_channel(actor=request_actor(request), channel_id=channel_id)
        return Response(status=204)


class ChannelTest(ChannelView):
    """The test button."""

    @extend_schema(request=None, responses={202: DeliverySerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, channel_id: str) -> Response:
        """Send a test; the delivery log says how it went."""
        made = channels.try_channel(actor=request_actor(request), channel_id=channel_id)
        return Response(DeliverySerializer(made).data, status=202)


class ChannelEnable(ChannelView):
    """Switching on."""

    @extend_schema(request=None, responses=_ONE, tags=_TAG)
    def post(self, request: Request, channel_id: str) -> Response:
        """Enable a channel; it is told of what fires now."""
        channel = channels.enable_channel(actor=request_actor(request), channel_id=channel_id)
        return Response(ChannelSerializer(channel).data)


class ChannelDisable(ChannelView):
    """Switching off."""

    @extend_schema(request=DisableSerializer, responses=_ONE, tags=_TAG)
    def post(self, request: Request, channel_id: str) -> Response:
        """Disable a channel; what still waits for it is dropped."""
        sent = DisableSerializer(data=request.data or {})
        sent.is_valid(raise_exception=True)
        channel = channels.disable_channel(
            actor=request_actor(request), channel_id=channel_id, reason=sent.validated_data["reason"]
        )
        return Response(ChannelSerializer(channel).data)


class ChannelDeliveries(GenericAPIView[Delivery]):
    """The delivery log."""

    read_scope = Scope.READ
    serializer_class = DeliverySerializer
    queryset = Delivery.objects.none()

    @extend_schema(
        responses={200: DeliverySerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="deliveries_list"
    )
    def get(self, request: Request, channel_id: str) -> Response:
        """List the notifications of a channel with every attempt, newest first."""
        page = self.paginate_queryset(selectors.deliveries(selectors.channel(channel_id).pk))
        return self.get_paginated_response(DeliverySerializer(page, many=True).data)
