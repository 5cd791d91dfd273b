"""What simulations and traces look like in JSON."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from controlplane.lab.lifecycle import State
from controlplane.lab.limits import MOST_POLICIES, MOST_RATES
from controlplane.lab.models import Simulation, Trace
from controlplane.lab.simulation_settings import DEFAULT_REQUESTS
from router.sim.metrics import Slo
from router.sim.scenario import Observation

_EXAMPLE = OpenApiExample(
    "The plain product against two rivals",
    value={
        "name": "Before the fleet grows",
        "trace": "chatbot",
        "policies": ["multiplicative", "vllm", "linear:L=0.55", "policy:default"],
        "fleet": "a100-80g:8,h100:4",
        "requests": 5000,
        "rate_scales": [1.0, 2.0],
    },
    request_only=True,
)


class TraceStatisticsSerializer(serializers.Serializer[Any]):
    """What a trace looks like."""

    requests = serializers.IntegerField()
    requests_per_s = serializers.FloatField()
    mean_prompt_tokens = serializers.FloatField()
    mean_output_tokens = serializers.FloatField()
    ideal_hit_ratio = serializers.FloatField(help_text="Share of prompt tokens that an endless cache would hold.")


class TraceSerializer(serializers.ModelSerializer[Trace]):
    """A trace that was taken in."""

    statistics = TraceStatisticsSerializer()
    hashed = serializers.BooleanField(help_text="Whether prompts carry blocks; without, nothing can hit.")

    class Meta:
        model = Trace
        fields = ["id", "name", "source", "format", "hashed", "size_bytes", "statistics", "author", "created_at"]
        read_only_fields = fields


class TraceUploadSerializer(serializers.Serializer[Any]):
    """A trace file: Mooncake, Qwen-Bailian, Claude Code, Azure or a recording; plain or gzip."""

    file = serializers.FileField(
        allow_empty_file=True, help_text="Mooncake, Qwen-Bailian, Claude Code, Azure or a recording; plain or gzip."
    )
    name = serializers.CharField(max_length=200, required=False, help_text="The file's own by default.")


@extend_schema_serializer(
    examples=[OpenApiExample("A worker's recording", value={"name": "router-0.jsonl"}, request_only=True)]
)
class RecordingNameSerializer(serializers.Serializer[Any]):
    """A recording to take in."""

    name = serializers.CharField(
        max_length=200, help_text="A file in the folder `recordings` of the data directory, with what it holds by now."
    )


class RecordingSerializer(serializers.Serializer[Any]):
    """A file that a router worker writes or wrote."""

    name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class SettingsSerializer(serializers.Serializer[Any]):
    """What is simulated. The laboratory checks it; ranges are in its answers."""

    trace = serializers.CharField(
        max_length=64,
        help_text="A generator's name, the id of a trace, or `own:MINUTES`: what router workers recorded lately.",
    )
    policies = serializers.ListField(
        child=serializers.CharField(max_length=500),
        max_length=MOST_POLICIES,
        help_text="`scorer[:name=value]...`, or `policy:NAME[@REVISION]` for a stored one.",
    )
    fleet = serializers.CharField(max_length=500, required=False, help_text="`PROFILE:COUNT,...`")
    as_registered = serializers.BooleanField(
        required=False, help_text="The instances that take requests now, by their names, instead of `fleet`."
    )
    requests = serializers.IntegerField(
        required=False, help_text=f"Most requests of one run ({DEFAULT_REQUESTS} by default)."
    )
    rate_scales = serializers.ListField(
        child=serializers.FloatField(),
        max_length=MOST_RATES,
        required=False,
        help_text="Multiples of the trace's own rate to run every policy at.",
    )
    sweep = serializers.BooleanField(required=False, help_text="Find saturation, and run at shares of the best rate.")
    spread = serializers.BooleanField(required=False, help_text="Spread batches of equal timestamps evenly.")
    duration_s = serializers.FloatField(required=False, allow_null=True, help_text="Only of a generator.")
    requests_per_s = serializers.FloatField(required=False, allow_null=True, help_text="Only of a generator.")
    seed = serializers.IntegerField(required=False)
    warmup = serializers.FloatField(required=False, help_text="Share of the first requests that is not measured.")
    slo_ttft_s = serializers.FloatField(required=False, help_text=f"{Slo().ttft_s} by default.")
    slo_tpot_s = serializers.FloatField(required=False, help_text=f"{Slo().tpot_s} by default.")
    report_delay_s = serializers.FloatField(
        required=False, help_text=f"How late engine metrics are known ({Observation().report_delay_s} by default)."
    )
    kv_event_delay_s = serializers.FloatField(
        required=False, allow_null=True, help_text="Engines publish KV events, known this late."
    )


@extend_schema_serializer(examples=[_EXAMPLE])
class NewSimulationSerializer(SettingsSerializer):
    """A simulation to be run."""

    name = serializers.CharField(max_length=200, allow_blank=True, required=False)


class SimulatedPolicySerializer(serializers.Serializer[Any]):
    """A policy as it was when the simulation was asked for."""

    name = serializers.CharField()
    content = serializers.DictField()


class PieceSerializer(serializers.Serializer[Any]):
    """One policy at one rate, and how much of it is done."""

    name = serializers.CharField()
    permille = serializers.IntegerField()


class SimulationSerializer(serializers.ModelSerializer[Simulation]):
    """A simulation as it stands."""

    settings = SettingsSerializer()
    policies = SimulatedPolicySerializer(many=True)
    trace = serializers.UUIDField(source="trace_id", allow_null=True)
    state = serializers.ChoiceField(choices=[state.value for state in State])
    progress = serializers.FloatField(help_text="Share of the phase that is done.")
    pieces = PieceSerializer(many=True)

    class Meta:
        model = Simulation
        fields = [
            "id",
            "name",
            "settings",
            "policies",
            "trace",
            "trace_name",
            "state",
            "reason",
            "phase",
            "progress",
            "pieces",
            "attempts",
            "author",
            "created_at",
            "started_at",
            "ended_at",
        ]
        read_only_fields = fields


class ResultSerializer(serializers.Serializer[Any]):
    """What came out, as `pointsman simulate --output json` prints it."""

    runs = serializers.ListField(child=serializers.DictField(), help_text="One object a policy and rate.")
    saturation = serializers.DictField(help_text="By policy, where a sweep was asked for.")
    provenance = serializers.DictField(help_text="Version, seed, trace, fleet: all that gives the same numbers again.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "The winner becomes a draft", value={"policy": "multiplicative:a=2", "name": "default"}, request_only=True
        )
    ]
)
class DraftSerializer(serializers.Serializer[Any]):
    """A simulated policy that is to become a stored one's draft."""

    policy = serializers.CharField(max_length=500, help_text="Its label in the simulation.")
    name = serializers.CharField(max_length=64, help_text="The stored policy; it is made where there is none.")
