"""What instances look like in JSON."""

from typing import Any

import msgspec
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from controlplane.fleet.engine_facts import MOST_TOKENS
from controlplane.fleet.models import Instance, InstanceRole
from controlplane.fleet.spec import LEASE_LIMITS_S, InstanceSpec
from controlplane.plain_words import in_plain_words
from router.config import MOST_RANKS, EventDirection, KvEventsConfig
from router.core.instance import InstanceState
from router.snapshot import EventsSample, Residency

_EXAMPLE = OpenApiExample(
    "A vLLM server",
    value={"name": "gpu-7", "url": "http://10.0.0.7:8000", "hardware": "h100", "labels": {"rack": "b2"}, "lease_s": 30},
    request_only=True,
)


class ProbeSerializer(serializers.Serializer[Instance]):
    """What the last probe found."""

    ok = serializers.BooleanField(source="probe_ok", allow_null=True, help_text="Null before the first probe.")
    reasons = serializers.ListField(
        child=serializers.CharField(), source="probe_reasons", help_text="What is wrong, or what is missing."
    )
    failures = serializers.IntegerField(source="probe_failures", help_text="Failed probes in a row.")
    successes = serializers.IntegerField(source="probe_successes", help_text="Successful probes in a row, capped.")
    at = serializers.DateTimeField(source="probed_at", allow_null=True)


class KvEventsSerializer(serializers.Serializer[Any]):
    """Where an engine publishes its KV events, for one that does not tell it itself (vLLM before 0.32)."""

    endpoint = serializers.CharField(max_length=300, help_text="ZMQ: tcp://host:port, as a router worker reaches it.")
    replay = serializers.CharField(
        max_length=300, allow_null=True, default=None, help_text="Where missed messages can be asked for."
    )
    topic = serializers.CharField(max_length=300, allow_blank=True, default="", help_text="Blank takes every topic.")
    direction = serializers.ChoiceField(
        choices=[(direction.value, direction.value) for direction in EventDirection],
        default=EventDirection.CONNECT.value,
        help_text="Whether workers connect to the endpoint, or bind it because the engine connects (one worker only).",
    )


class ResidencySerializer(serializers.Serializer[EventsSample]):
    """How router workers know what an instance's KV cache holds; figures are null where no events are followed."""

    mode = serializers.ChoiceField(source="residency.value", choices=[(mode.value, mode.value) for mode in Residency])
    reason = serializers.CharField(help_text="Why it is only estimated; blank otherwise.")
    connected = serializers.BooleanField(allow_null=True, help_text="Whether the publisher of events can be reached.")
    lag_s = serializers.FloatField(allow_null=True, help_text="Age of the newest events when they were applied.")
    blocks = serializers.IntegerField(allow_null=True, help_text="KV blocks that the engine told it holds.")
    gaps = serializers.IntegerField()
    restarts = serializers.IntegerField()
    losses = serializers.IntegerField(help_text="Times that missed events could not be had any more.")
    last_loss = serializers.CharField()
    checked = serializers.IntegerField(help_text="Newest answers of which predicted and reported hit were compared.")
    check_wrong_share = serializers.FloatField(allow_null=True, help_text="Of these, wrong by more than a block.")
    check_error_blocks = serializers.FloatField(allow_null=True, help_text="95th percentile of the difference.")
    disbelieved = serializers.BooleanField(help_text="Whether the events are not believed, because reports differed.")


class InstanceSerializer(serializers.ModelSerializer[Instance]):
    """An instance as it stands."""

    models = serializers.ListField(child=serializers.CharField(), source="served_models")
    labels = serializers.DictField(child=serializers.CharField())
    kv_event_endpoints = serializers.ListField(child=serializers.CharField())
    kv_events = KvEventsSerializer(allow_null=True, help_text="As registered; null has routers ask the engine.")
    probe = ProbeSerializer(source="*")
    has_authorization = serializers.SerializerMethodField(help_text="Whether it has credentials of its own upstream.")
    in_flight = serializers.SerializerMethodField(
        help_text="Requests there, as live router workers last said; null when none of them knows the instance."
    )

    residency = serializers.SerializerMethodField(
        help_text="How live router workers know what its KV cache holds; null when none of them knows the instance."
    )

    class Meta:
        model = Instance
        fields = [
            "id",
            "name",
            "url",
            "role",
            "state",
            "state_reason",
            "state_since",
            "epoch",
            "hardware",
            "models",
            "models_source",
            "labels",
            "spot",
            "engine",
            "kv_block_tokens",
            "kv_capacity_tokens",
            "kv_event_endpoints",
            "kv_events",
            "data_parallel_ranks",
            "ranks",
            "has_metrics",
            "probe",
            "has_authorization",
            "lease_s",
            "lease_expires_at",
            "last_heartbeat_at",
            "preempt_at",
            "in_flight",
            "residency",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    def get_has_authorization(self, instance: Instance) -> bool:
        """Tell whether there are credentials, never which."""
        return instance.authorization is not None

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_in_flight(self, instance: Instance) -> int | None:
        """Look the instance up among what workers said, gathered once for a whole list."""
        counts = self.context.get("in_flight", {})
        found: int | None = counts.get(str(instance.pk))
        return found

    @extend_schema_field(ResidencySerializer(allow_null=True))
    def get_residency(self, instance: Instance) -> dict[str, Any] | None:
        """Look the instance up among what workers said, gathered once for a whole list."""
        sample = self.context.get("residency", {}).get(str(instance.pk))
        return None if sample is None else dict(ResidencySerializer(sample).data)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A vLLM server",
            value={"url": "http://10.0.0.7:8000", "hardware": "h100", "labels": {"rack": "b2"}, "lease_s": 30},
            request_only=True,
        )
    ]
)
class InstanceSettingsSerializer(serializers.Serializer[Any]):
    """What may be set; what is left out is found by the probe or has its default."""

    url = serializers.CharField(max_length=500, help_text="http:// or https://, without credentials.")
    role = serializers.ChoiceField(choices=InstanceRole.choices, default=InstanceRole.BOTH)
    hardware = serializers.CharField(
        max_length=64, default="", allow_blank=True, help_text="Name of a hardware profile; blank where unknown."
    )
    models = serializers.ListField(
        child=serializers.CharField(max_length=300),
        allow_null=True,
        default=None,
        max_length=1000,
        help_text="Null has them found by the probe; an empty list means any.",
    )
    labels = serializers.DictField(child=serializers.CharField(max_length=256, allow_blank=True), default=dict)
    spot = serializers.BooleanField(default=False)
    lease_s = serializers.IntegerField(
        allow_null=True,
        default=None,
        min_value=LEASE_LIMITS_S[0],
        max_value=LEASE_LIMITS_S[1],
        help_text="Seconds that one heartbeat lasts; null where none is needed.",
    )
    kv_block_tokens = serializers.IntegerField(allow_null=True, default=None, min_value=1, max_value=MOST_TOKENS)
    kv_capacity_tokens = serializers.IntegerField(allow_null=True, default=None, min_value=1, max_value=MOST_TOKENS)
    kv_events = KvEventsSerializer(
        allow_null=True, default=None, help_text="Null has routers ask the engine where it publishes."
    )
    data_parallel_ranks = serializers.IntegerField(
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MOST_RANKS,
        help_text="Ranks behind the address, each routed to by itself; null has them found by the probe.",
    )
    authorization = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=4000,
        write_only=True,
        help_text="What to send the engine as Authorization; kept sealed, never shown. Null keeps it, blank drops it.",
    )

    def spec(self, name: str) -> InstanceSpec:
        """Return the checked settings for an instance of this name."""
        return InstanceSpec(**{**_tupled(self.validated_data), "name": name})


@extend_schema_serializer(examples=[_EXAMPLE])
class NewInstanceSerializer(InstanceSettingsSerializer):
    """A new instance."""

    name = serializers.CharField(max_length=100)


@extend_schema_serializer(
    examples=[OpenApiExample("Another rack", value={"labels": {"rack": "b3"}}, request_only=True)]
)
class InstancePatchSerializer(InstanceSettingsSerializer):
    """Some settings; what is left out stays."""

    def changes(self) -> dict[str, Any]:
        """Return what was sent."""
        return {k: v for k, v in _tupled(self.validated_data).items() if k in self.initial_data}


HEARTBEAT_FIELDS = ("name", "state", "lease_expires_at", "last_heartbeat_at")
"""Few, and read directly: a large fleet sends many heartbeats."""


class HeartbeatSerializer(serializers.Serializer[Instance]):
    """What an instance needs to know after a heartbeat."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[(state.value, state.value) for state in InstanceState])
    lease_expires_at = serializers.DateTimeField(allow_null=True)
    last_heartbeat_at = serializers.DateTimeField()


@extend_schema_serializer(
    examples=[OpenApiExample("An upgrade", value={"reason": "driver upgrade"}, request_only=True)]
)
class ReasonSerializer(serializers.Serializer[Any]):
    """Why something is done."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


@extend_schema_serializer(examples=[OpenApiExample("Two minutes", value={"in_s": 120}, request_only=True)])
class PreemptionSerializer(serializers.Serializer[Any]):
    """A provider's notice that a spot instance is taken away."""

    in_s = serializers.IntegerField(min_value=0, max_value=86_400, default=30, help_text="Seconds until it is gone.")


def _whole_kv_events(given: dict[str, Any]) -> KvEventsConfig:
    """Return them as they are kept; a patch that names them must say them whole."""
    try:
        return msgspec.convert(given, KvEventsConfig)
    except msgspec.ValidationError as error:
        raise serializers.ValidationError({"kv_events": [in_plain_words(error)]}) from None


def _tupled(values: dict[str, Any]) -> dict[str, Any]:
    found = dict(values)
    if found.get("models") is not None:
        found["models"] = tuple(found["models"])
    if found.get("kv_events") is not None:
        found["kv_events"] = _whole_kv_events(dict(found["kv_events"]))
    return found
