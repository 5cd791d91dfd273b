"""Decisions: the newest ones that routers explained by themselves, and any one that is asked for."""

from typing import Any

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.access import Scope
from controlplane.decisions.explaining import Explanation, Finding, explain
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.policies.presets import preset_policies
from controlplane.policies.selectors import live_policies
from controlplane.problem_schema import PROBLEMS
from controlplane.telemetry.decision_samples import CAPACITY
from controlplane.telemetry.hub import hub
from controlplane.telemetry.what_if import alternatives
from router.snapshot import DecisionSample

_TAG = ["decisions"]
_FILTERS = ("workload", "chosen", "policy")
_DEFAULT_LIMIT = 100


class CandidateLoadSerializer(serializers.Serializer[Any]):
    """What else was known of an instance."""

    running = serializers.IntegerField()
    waiting = serializers.IntegerField()
    own_requests = serializers.IntegerField()
    active_kv_tokens = serializers.IntegerField()
    kv_use = serializers.FloatField(allow_null=True)
    windowed_prefill_tokens = serializers.IntegerField()
    last_chosen = serializers.IntegerField()


class CandidateTermsSerializer(serializers.Serializer[Any]):
    """What the optional terms of policies read of an instance."""

    requests = serializers.IntegerField(help_text="Requests there, this one not included.")
    takes_requests = serializers.BooleanField(help_text="Whether its state takes new requests.")
    barred = serializers.BooleanField(help_text="Whether it was out under every policy.")
    spot = serializers.BooleanField()
    cold_for_s = serializers.FloatField(allow_null=True, help_text="How long it had been cold; null when warm.")
    warmth = serializers.FloatField(help_text="Its prefix blocks, as a share of the mean of the warm instances.")
    hardware = serializers.IntegerField(allow_null=True, help_text="Its profile: a place in `hardware`.")
    observed = serializers.IntegerField(allow_null=True, help_text="The same for what was observed of its steps.")


class HotspotSerializer(serializers.Serializer[Any]):
    """What the hotspot rule of the deciding policy made of the request."""

    rule = serializers.DictField(help_text="The rule, as a policy has it.")
    mitigated = serializers.CharField(help_text="The prefix class that was kept from its holders; empty when none.")
    holders = serializers.ListField(child=serializers.CharField())


class CandidateSerializer(serializers.Serializer[Any]):
    """One instance in one decision: its factors and score, or why it was out."""

    instance = serializers.CharField()
    hit_tokens = serializers.IntegerField()
    new_tokens = serializers.IntegerField()
    queued_prefill_tokens = serializers.IntegerField()
    p_token = serializers.IntegerField()
    bs = serializers.IntegerField(help_text="Requests there, this one included.")
    score = serializers.FloatField(allow_null=True)
    filtered = serializers.CharField(allow_null=True, help_text="Why it was out.")
    p_offset = serializers.IntegerField()
    factor = serializers.FloatField()
    exact = serializers.BooleanField(help_text="Whether the hit is the engine's own word (KV events), not an estimate.")
    load = CandidateLoadSerializer(allow_null=True)
    terms = CandidateTermsSerializer(allow_null=True)


class DecisionSerializer(serializers.Serializer[Any]):
    """One decision; candidates from best to worst, those that were out last."""

    request_id = serializers.CharField()
    time_unix_s = serializers.FloatField()
    model = serializers.CharField()
    workload = serializers.CharField()
    policy = serializers.CharField()
    scorer = serializers.CharField()
    a = serializers.FloatField()
    b = serializers.FloatField()
    c = serializers.FloatField(allow_null=True)
    prompt_tokens = serializers.IntegerField()
    estimated = serializers.BooleanField(help_text="Whether tokens are estimated from bytes.")
    chosen = serializers.CharField(allow_null=True)
    candidates = CandidateSerializer(many=True)
    preferred = serializers.CharField(allow_null=True, help_text="Served the session last: it wins ties.")
    hardware = serializers.ListField(child=serializers.DictField(), help_text="Hardware profiles of the candidates.")
    watching = serializers.BooleanField(
        allow_null=True, help_text="Whether any prefix class was on watch for a hotspot; null when it was not told."
    )
    hotspot = HotspotSerializer(allow_null=True)


class AlternativeSerializer(serializers.Serializer[Any]):
    """What another policy would have chosen from the same candidates."""

    policy = serializers.CharField()
    chosen = serializers.CharField(allow_null=True)
    agrees = serializers.BooleanField()
    unknown = serializers.CharField(
        help_text="Why there is no answer: what this policy reads and is not known for this decision. Empty with one."
    )


class ExplainedDecisionSerializer(DecisionSerializer):
    """One decision, and what other policies would have chosen."""

    alternatives = AlternativeSerializer(many=True)


class DecisionsSerializer(serializers.Serializer[Any]):
    """The newest decisions."""

    decisions = DecisionSerializer(many=True)


class Decisions(APIView):
    """Samples."""

    read_scope = Scope.READ

    @extend_schema(
        parameters=[
            *(OpenApiParameter(name, str) for name in _FILTERS),
            OpenApiParameter("limit", int, description=f"1 to {CAPACITY}; {_DEFAULT_LIMIT} by default."),
        ],
        responses={200: DecisionsSerializer} | PROBLEMS.read,
        tags=_TAG,
        operation_id="decisions_list",
    )
    def get(self, request: Request) -> Response:
        """List the newest decisions that routers explained by themselves (up to four a second), newest first."""
        wanted = {name: value for name in _FILTERS if (value := request.query_params.get(name))}
        found = [
            sample
            for sample in hub().decisions.recent(CAPACITY)
            if all(getattr(sample, name) == value for name, value in wanted.items())
        ]
        return Response({"decisions": msgspec.to_builtins(found[: _limit(request)])})


class DecisionDetail(APIView):
    """One decision."""

    read_scope = Scope.READ

    @extend_schema(
        parameters=[OpenApiParameter("request_id", OpenApiTypes.STR, OpenApiParameter.PATH)],
        responses={200: ExplainedDecisionSerializer} | PROBLEMS.change,
        tags=_TAG,
        operation_id="decision",
    )
    def get(self, request: Request, request_id: str) -> Response:
        """Explain a request by its newest decision: every router worker is asked, for at most a few seconds.

        A decision that was asked for is kept; it is told where no worker has a newer one, or none answers in time.
        404 says that no worker remembers it; 409 that one did not answer in time, or that nobody can be asked.
        """
        sample = _decision(explain(request_id))
        own = live_policies()
        others = [
            {
                "policy": one.policy.label if one.policy in own else one.policy.name,
                "chosen": one.chosen,
                "agrees": one.agrees,
                "unknown": one.unknown,
            }
            for one in alternatives(sample, [*own, *preset_policies()])
        ]
        return Response(msgspec.to_builtins(sample) | {"alternatives": others})


def _decision(found: Explanation) -> DecisionSample:
    if found.decision is not None:
        return found.decision
    if found.finding is Finding.FORGOTTEN:
        raise NotFound(f"No router worker remembers the request {found.request_id}.", asked=found.asked)
    if found.finding is Finding.NO_WORKERS:
        raise Conflict("No router worker is heard at present, so nobody can be asked.")
    raise Conflict(f"Not every router worker answered in time: {', '.join(found.silent)}.", silent=list(found.silent))


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(_DEFAULT_LIMIT))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= CAPACITY:
        raise Invalid({"limit": [f"It must be a whole number from 1 to {CAPACITY}."]})
    return int(text)
