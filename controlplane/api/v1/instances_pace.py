"""The pace of an instance by what it was seen to do: to be read, and to be simulated."""

import msgspec
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.v1.instances import InstanceView
from controlplane.errors import NotFound
from controlplane.problem_schema import PROBLEMS
from controlplane.telemetry.observed_pace import ObservedPace, observed_pace


class HardwareProfileSerializer(serializers.Serializer[ObservedPace]):
    """The costs of one engine step: what `pointsman simulate --hardware FILE` takes."""

    name = serializers.CharField()
    t0_s = serializers.FloatField(help_text="What a step costs at all, in seconds.")
    prefill_s_per_token = serializers.FloatField()
    decode_s_per_sequence = serializers.FloatField()
    decode_s_per_kv_token = serializers.FloatField()
    kv_capacity_tokens = serializers.IntegerField()
    max_batch_tokens = serializers.IntegerField()
    max_sequences = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]  # DRF takes declared fields off the class


class DecodeStepSerializer(serializers.Serializer[ObservedPace]):
    """A point of the decode curve."""

    batch = serializers.IntegerField(help_text="Sequences that decode.")
    observed_s = serializers.FloatField()
    configured_s = serializers.FloatField(allow_null=True)


class RankPaceSerializer(serializers.Serializer[ObservedPace]):
    """What the steps of one data-parallel rank cost."""

    name = serializers.CharField()
    prefill_tokens_per_s = serializers.FloatField()
    first_token_overhead_s = serializers.FloatField()
    decode_steps = DecodeStepSerializer(many=True)
    prefill_samples = serializers.IntegerField()
    decode_samples = serializers.IntegerField()
    enough = serializers.BooleanField()


class ObservedPaceSerializer(serializers.Serializer[ObservedPace]):
    """What an instance's steps cost by the requests that it served, and by its configured profile."""

    profile = HardwareProfileSerializer()
    configured = serializers.CharField(allow_null=True, help_text="Name of the configured profile.")
    prefill_tokens_per_s = serializers.FloatField()
    configured_prefill_tokens_per_s = serializers.FloatField(allow_null=True)
    first_token_overhead_s = serializers.FloatField(help_text="What a first token takes beyond prefill.")
    decode_steps = DecodeStepSerializer(many=True)
    context_tokens = serializers.IntegerField(help_text="KV tokens of each sequence in `decode_steps`.")
    prefill_samples = serializers.IntegerField()
    decode_samples = serializers.IntegerField()
    relative_error = serializers.FloatField(help_text="Median distance of single observations from these costs.")
    enough = serializers.BooleanField(help_text="Whether policies that ask for observed hardware use it.")
    ranks = RankPaceSerializer(
        many=True, help_text="Data-parallel ranks, where it has several; the rest is their mean."
    )


class Pace(InstanceView):
    """What an instance was seen to do."""

    serializer_class = ObservedPaceSerializer

    @extend_schema(responses={200: ObservedPaceSerializer} | PROBLEMS.read, tags=["instances"])
    def get(self, request: Request, name: str) -> Response:
        """Show the observed prefill rate and decode curve, with a hardware profile for the simulator."""
        instance = self.find(name)
        found = observed_pace(str(instance.pk), instance.name, instance.hardware, instance.kv_capacity_tokens)
        if found is None:
            raise NotFound(f"Too little was observed of {instance.name} yet.")
        return Response(msgspec.to_builtins(found))
