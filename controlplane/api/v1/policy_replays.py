"""Previewing a policy by simulation: the last minutes of recorded requests, as it is live and as it is edited."""

from typing import Any

import msgspec
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.errors import NotFound
from controlplane.lab import selectors
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation
from controlplane.lab.own_traffic import MOST_MINUTES
from controlplane.lab.replay_result import replay_result
from controlplane.lab.services.previews import preview_policy
from controlplane.problem_schema import PROBLEMS

_TAG = ["policies"]
_DEFAULT_MINUTES = 10


@extend_schema_serializer(
    examples=[OpenApiExample("Fewer at once", value={"content": {"b": 1.5}, "minutes": 10}, request_only=True)]
)
class ReplayRequestSerializer(serializers.Serializer[Any]):
    """The content to preview, and how far back to go."""

    content = serializers.DictField()
    minutes = serializers.IntegerField(min_value=1, max_value=MOST_MINUTES, default=_DEFAULT_MINUTES)


class DistributionSerializer(serializers.Serializer[Any]):
    """Mean and quantiles."""

    mean = serializers.FloatField()
    p50 = serializers.FloatField()
    p90 = serializers.FloatField()
    p99 = serializers.FloatField()


class SimulatedSerializer(serializers.Serializer[Any]):
    """What the simulator predicts of one policy."""

    ttft_s = DistributionSerializer()
    tpot_s = DistributionSerializer()
    hit_ratio = serializers.FloatField()
    load_max_over_mean = serializers.FloatField()
    refused = serializers.IntegerField()


class InstanceShareSerializer(serializers.Serializer[Any]):
    """The requests of one instance under each, and their shares of all."""

    instance = serializers.CharField()
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    before_share = serializers.FloatField()
    after_share = serializers.FloatField()


class ReplayResultSerializer(serializers.Serializer[Any]):
    """Both runs side by side; the requests after the warm-up."""

    live = serializers.CharField()
    requests = serializers.IntegerField()
    moved = serializers.IntegerField(help_text="Requests that the edited policy sent elsewhere.")
    recorded = serializers.IntegerField(help_text="Requests of the recording, with those of the warm-up.")
    provenance = serializers.CharField()
    held_tokens = serializers.IntegerField(
        help_text="Tokens that caches began with: what recorded requests found there and no earlier one had left."
    )
    recorded_hit_ratio = serializers.FloatField(
        allow_null=True, help_text="What real engines had in their caches, of the requests after the warm-up."
    )
    shares = InstanceShareSerializer(many=True)
    before = SimulatedSerializer()
    after = SimulatedSerializer()


class ReplaySerializer(serializers.Serializer[Any]):
    """A preview as it stands; `POST simulations/ID/cancel/` ends it."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=[state.value for state in State])
    phase = serializers.CharField()
    progress = serializers.FloatField(help_text="Share of the phase that is done.")
    reason = serializers.CharField()
    result = ReplayResultSerializer(allow_null=True)


class PolicyReplay(APIView):
    """Asking."""

    write_scope = Scope.POLICIES

    @extend_schema(request=ReplayRequestSerializer, responses={202: ReplaySerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, name: str) -> Response:
        """Simulate the last minutes of recorded requests, as the policy is live and with a content. Nothing changes."""
        sent = ReplayRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        made = preview_policy(actor=request_actor(request), name=name, **sent.validated_data)
        return Response(_shown(made), status=202)


class PolicyReplayDetail(APIView):
    """Following."""

    read_scope = Scope.READ

    @extend_schema(responses={200: ReplaySerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str, simulation_id: str) -> Response:
        """Show how far a preview is, and what came out."""
        simulation = selectors.simulation(simulation_id)
        if simulation.preview_of != name:
            raise NotFound("There is no such preview.")
        return Response(_shown(simulation))


def _shown(simulation: Simulation) -> dict[str, Any]:
    done = simulation.life is State.DONE
    return {
        "id": str(simulation.pk),
        "state": simulation.state,
        "phase": simulation.phase,
        "progress": simulation.progress,
        "reason": simulation.reason,
        "result": msgspec.to_builtins(replay_result(selectors.comparison(simulation.pk))) if done else None,
    }
