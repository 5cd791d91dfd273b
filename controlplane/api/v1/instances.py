"""Instances: registered, changed, drained, removed."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.v1 import instances_filters
from controlplane.api.v1.instances_serializers import (
    HEARTBEAT_FIELDS,
    HeartbeatSerializer,
    InstancePatchSerializer,
    InstanceSerializer,
    InstanceSettingsSerializer,
    NewInstanceSerializer,
    PreemptionSerializer,
    ReasonSerializer,
)
from controlplane.errors import Invalid, NotFound
from controlplane.fleet import selectors
from controlplane.fleet.models import Instance
from controlplane.fleet.services import leases, moves, registration
from controlplane.problem_schema import PROBLEMS
from controlplane.telemetry.in_flight import in_flight_by_instance
from controlplane.telemetry.residency import residency_by_instance

_FORCE = OpenApiParameter("force", bool, description="Remove it although requests are in flight.")
_TAG = ["instances"]


class InstanceView(GenericAPIView[Instance]):
    """What all views of instances share."""

    read_scope = Scope.READ
    write_scope = Scope.INSTANCES
    serializer_class: type[BaseSerializer[Any]] = InstanceSerializer
    queryset = Instance.objects.none()

    def find(self, name: str) -> Instance:
        """Return the living instance of a name or id.

        :raises NotFound: when there is none.
        """
        found = selectors.living().filter(name=name).first()
        if found is None and (identity := _uuid(name)):
            found = selectors.living().filter(pk=identity).first()
        if found is None:
            raise NotFound(f"There is no instance named {name}.")
        return found

    def shown(self, instance: Instance, status: int = 200) -> Response:
        """Answer with an instance as it stands now."""
        instance.refresh_from_db()
        context = {"in_flight": in_flight_by_instance(), "residency": residency_by_instance()}
        return Response(InstanceSerializer(instance, context=context).data, status=status)


class Instances(InstanceView):
    """The list, and new ones."""

    @extend_schema(
        parameters=instances_filters.PARAMETERS,
        responses={200: InstanceSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="instances_list",
    )
    def get(self, request: Request) -> Response:
        """List instances, filtered, ordered and in pages."""
        rows = instances_filters.filtered(selectors.living(), request.query_params)
        page = self.paginate_queryset(rows)
        context = {"in_flight": in_flight_by_instance(), "residency": residency_by_instance()}
        return self.get_paginated_response(InstanceSerializer(page, many=True, context=context).data)

    @extend_schema(request=NewInstanceSerializer, responses={201: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Register a new instance; it is probed at once."""
        sent = NewInstanceSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        spec = sent.spec(sent.validated_data["name"])
        return self.shown(registration.register(actor=request_actor(request), spec=spec), 201)


class InstanceDetail(InstanceView):
    """One instance, by name or id."""

    @extend_schema(responses={200: InstanceSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show an instance."""
        return self.shown(self.find(name))

    @extend_schema(
        request=InstanceSettingsSerializer,
        responses={200: InstanceSerializer, 201: InstanceSerializer} | PROBLEMS.change,
        tags=_TAG,
    )
    def put(self, request: Request, name: str) -> Response:
        """Register an instance of this name, or make it be as said; the same again changes nothing."""
        sent = InstanceSettingsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        instance, created = registration.put(actor=request_actor(request), spec=sent.spec(name))
        return self.shown(instance, 201 if created else 200)

    @extend_schema(request=InstancePatchSerializer, responses={200: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def patch(self, request: Request, name: str) -> Response:
        """Change some settings."""
        instance = self.find(name)
        sent = InstancePatchSerializer(data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        spec = registration.spec_of(instance, **sent.changes())
        return self.shown(registration.change(actor=request_actor(request), instance_id=instance.pk, spec=spec))

    @extend_schema(
        parameters=[_FORCE], responses={204: OpenApiResponse(description="Removed.")} | PROBLEMS.change, tags=_TAG
    )
    def delete(self, request: Request, name: str) -> Response:
        """Remove an instance; refused while requests are in flight there, unless forced."""
        instance = self.find(name)
        moves.remove(
            actor=request_actor(request),
            instance_id=instance.pk,
            in_flight=in_flight_by_instance().get(str(instance.pk), 0),
            force=_flag(request, "force"),
        )
        return Response(status=204)


class Heartbeat(InstanceView):
    """Renewing the lease."""

    @extend_schema(request=None, responses={200: HeartbeatSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Say that the instance is alive."""
        instance = leases.heartbeat(instance=self.find(name))
        return Response({field: getattr(instance, field) for field in HEARTBEAT_FIELDS})


class _Move(InstanceView):
    def moved(self, request: Request, name: str, service: object) -> Response:
        sent = ReasonSerializer(data=request.data or {})
        sent.is_valid(raise_exception=True)
        instance = self.find(name)
        return self.shown(
            service(  # type: ignore[operator]
                actor=request_actor(request), instance_id=instance.pk, reason=sent.validated_data["reason"]
            )
        )


class Drain(_Move):
    """Taking out of rotation, gently."""

    @extend_schema(request=ReasonSerializer, responses={200: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Let the instance finish what it has and take nothing new."""
        return self.moved(request, name, moves.drain)


class Undrain(_Move):
    """Bringing back."""

    @extend_schema(request=ReasonSerializer, responses={200: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Bring a drained instance, or one in maintenance, back."""
        return self.moved(request, name, moves.undrain)


class Maintenance(_Move):
    """Taking out of rotation at once."""

    @extend_schema(request=ReasonSerializer, responses={200: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Take the instance out of rotation at once."""
        return self.moved(request, name, moves.maintain)


class Preemption(InstanceView):
    """Spot notices."""

    @extend_schema(request=PreemptionSerializer, responses={200: InstanceSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Note that a spot instance will be taken away, and drain it."""
        sent = PreemptionSerializer(data=request.data or {})
        sent.is_valid(raise_exception=True)
        in_s: int = sent.validated_data["in_s"]
        return self.shown(moves.preempt(actor=request_actor(request), instance_id=self.find(name).pk, in_s=in_s))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "false").lower()
    if text not in {"true", "false", "1", "0"}:
        raise Invalid({name: ["It must be true or false."]})
    return text in {"true", "1"}
