"""Kinds of alerts and their limits."""

from typing import Any

import msgspec
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.alerts.evaluating import limits_in_force
from controlplane.alerts.kinds import KINDS, kind_named
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.api.v1.alerts_serializers import KindSerializer, KindSettingsSerializer
from controlplane.problem_schema import PROBLEMS

_TAG = ["alerts"]


class AlertKinds(APIView):
    """Every kind."""

    read_scope = Scope.READ

    @extend_schema(
        responses={200: KindSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="alert_kinds_list"
    )
    def get(self, request: Request) -> Response:
        """List every kind of alert: what it means, what to do, and the limits in force."""
        return Response(KindSerializer([_shown(name) for name in KINDS], many=True).data)


class AlertKind(APIView):
    """One kind."""

    read_scope = Scope.READ
    write_scope = Scope.ALERTS

    @extend_schema(responses={200: KindSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show a kind."""
        return Response(KindSerializer(_shown(name)).data)

    @extend_schema(request=KindSettingsSerializer, responses={200: KindSerializer} | PROBLEMS.change, tags=_TAG)
    def put(self, request: Request, name: str) -> Response:
        """Set whether a kind is looked for, and the limits that differ from the defaults."""
        sent = KindSettingsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        set_kind(actor=request_actor(request), name=name, **sent.validated_data)
        return Response(KindSerializer(_shown(name)).data)


def _shown(name: str) -> dict[str, Any]:
    kind, in_force = kind_named(name), limits_in_force()
    return {
        "name": kind.name,
        "title": kind.title,
        "meaning": kind.meaning,
        "what_to_do": list(kind.what_to_do),
        "enabled": name in in_force,
        "limits": msgspec.to_builtins(in_force.get(name, kind.limits)),
        "default_limits": msgspec.to_builtins(kind.limits),
        "limit_docs": dict(kind.limit_docs),
    }
