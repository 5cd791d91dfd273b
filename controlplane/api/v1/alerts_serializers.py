"""What alerts, silences and channels look like in JSON."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.matchers import Operator
from controlplane.alerts.models import (
    Alert,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    Occasion,
    Silence,
    TimelineEntry,
)
from controlplane.alerts.selectors import silenced_by
from controlplane.alerts.services.channels import shown_settings
from controlplane.alerts.services.handling import MAX_BULK, MAX_COMMENT

_MATCHER_EXAMPLE = OpenApiExample(
    "Two instances under repair",
    value={
        "matchers": [{"label": "instance", "operator": "=~", "value": "gpu-[12]"}],
        "ends_at": "2030-01-31T18:00:00Z",
        "comment": "New fans are put in.",
    },
    request_only=True,
)
_CHANNEL_EXAMPLE = OpenApiExample(
    "A webhook",
    value={
        "name": "on-call",
        "kind": "webhook",
        "settings": {"url": "https://hooks.example.com/pointsman", "signing_key": "at least 16 characters"},
        "matchers": [{"label": "severity", "operator": "=", "value": "critical"}],
    },
    request_only=True,
)


class TimelineEntrySerializer(serializers.ModelSerializer[TimelineEntry]):
    """One thing that happened to an alert."""

    class Meta:
        model = TimelineEntry
        fields = ["at", "what", "actor", "text"]
        read_only_fields = fields


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert as it stands."""

    state = serializers.ChoiceField(choices=[s.value for s in AlertState])
    title = serializers.SerializerMethodField(help_text="Short name of the kind.")
    labels = serializers.DictField(child=serializers.CharField())
    values = serializers.DictField(help_text="The newest evidence; units are in the names.")
    assignee = serializers.CharField(source="assignee.username", default=None, allow_null=True)
    silenced_until = serializers.SerializerMethodField(help_text="When the silence that matches it ends; null if none.")

    class Meta:
        model = Alert
        fields = [
            "id",
            "fingerprint",
            "kind",
            "title",
            "severity",
            "state",
            "state_since",
            "summary",
            "labels",
            "values",
            "started_at",
            "last_seen_at",
            "recurrences",
            "acknowledged_by",
            "acknowledged_until",
            "resolved_at",
            "resolved_by",
            "assignee",
            "silenced_until",
        ]
        read_only_fields = fields

    def get_title(self, alert: Alert) -> str:
        """Look the kind up."""
        kind = KINDS.get(alert.kind)
        return alert.kind if kind is None else kind.title

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_silenced_until(self, alert: Alert) -> Any:
        """Look for a silence among those that hold, read once for a whole list."""
        silence = silenced_by(alert, self.context.get("silences", [])) if alert.is_open else None
        return None if silence is None else silence.ends_at


class AlertDetailSerializer(AlertSerializer):
    """An alert with its timeline, what it means and what to do."""

    meaning = serializers.SerializerMethodField()
    what_to_do = serializers.SerializerMethodField()
    timeline = TimelineEntrySerializer(many=True)

    class Meta(AlertSerializer.Meta):
        fields = [*AlertSerializer.Meta.fields, "meaning", "what_to_do", "timeline"]
        read_only_fields = fields

    def get_meaning(self, alert: Alert) -> str:
        """Look the kind up."""
        kind = KINDS.get(alert.kind)
        return "" if kind is None else kind.meaning

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_what_to_do(self, alert: Alert) -> list[str]:
        """Look the kind up."""
        kind = KINDS.get(alert.kind)
        return [] if kind is None else list(kind.what_to_do)


@extend_schema_serializer(
    examples=[OpenApiExample("Looking into it", value={"comment": "Looking into it."}, request_only=True)]
)
class AcknowledgementSerializer(serializers.Serializer[Any]):
    """How long somebody looks after it."""

    until = serializers.DateTimeField(
        allow_null=True, default=None, help_text="When the alert fires again unless it is over; null for no end."
    )
    comment = serializers.CharField(max_length=MAX_COMMENT, allow_blank=True, default="")


@extend_schema_serializer(
    examples=[OpenApiExample("Over", value={"comment": "The engine was restarted."}, request_only=True)]
)
class ResolutionSerializer(serializers.Serializer[Any]):
    """Why it is over."""

    comment = serializers.CharField(max_length=MAX_COMMENT, allow_blank=True, default="")


@extend_schema_serializer(examples=[OpenApiExample("To a person", value={"assignee": "ada"}, request_only=True)])
class AssignmentSerializer(serializers.Serializer[Any]):
    """Who looks after it."""

    assignee = serializers.CharField(
        max_length=150, allow_null=True, allow_blank=True, help_text="Who looks after it; nobody by default."
    )


@extend_schema_serializer(
    examples=[OpenApiExample("A remark", value={"text": "The same as last week."}, request_only=True)]
)
class CommentSerializer(serializers.Serializer[Any]):
    """Something to be said."""

    text = serializers.CharField(max_length=MAX_COMMENT, help_text="Others read it in the alert's timeline.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Acknowledge several",
            value={"alerts": ["5dd9a3a9-9353-4ec3-a604-af66caa5061e"], "action": "acknowledge"},
            request_only=True,
        )
    ]
)
class BulkSerializer(serializers.Serializer[Any]):
    """One thing to do to many alerts."""

    alerts = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=MAX_BULK)
    action = serializers.ChoiceField(choices=["acknowledge", "resolve", "assign", "comment"])
    until = serializers.DateTimeField(allow_null=True, default=None, help_text="Of acknowledge.")
    comment = serializers.CharField(max_length=MAX_COMMENT, allow_blank=True, default="")
    assignee = serializers.CharField(max_length=150, allow_null=True, allow_blank=True, default=None)


class BulkResultSerializer(serializers.Serializer[Any]):
    """How many were done, and why others were not."""

    done = serializers.IntegerField()
    refused = serializers.DictField(child=serializers.CharField(), help_text="Reason by id.")


class MatcherSerializer(serializers.Serializer[Any]):
    """One condition on one label."""

    operator = serializers.ChoiceField(choices=[o.value for o in Operator])
    value = serializers.CharField(max_length=256, allow_blank=True, trim_whitespace=False)

    def get_fields(self) -> dict[str, Any]:
        """Add the field whose name this class itself has."""
        return {"label": serializers.CharField(max_length=64), **super().get_fields()}


class SilenceSerializer(serializers.ModelSerializer[Silence]):
    """A silence."""

    matchers = MatcherSerializer(many=True)

    class Meta:
        model = Silence
        fields = ["id", "matchers", "comment", "created_by", "created_at", "starts_at", "ends_at"]
        read_only_fields = fields


@extend_schema_serializer(examples=[_MATCHER_EXAMPLE])
class NewSilenceSerializer(serializers.Serializer[Any]):
    """A silence to be made."""

    matchers = MatcherSerializer(many=True)
    starts_at = serializers.DateTimeField(allow_null=True, default=None, help_text="Now by default.")
    ends_at = serializers.DateTimeField(help_text="Mandatory, and at most 30 days after the beginning.")
    comment = serializers.CharField(max_length=500)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "One instance",
            value={"matchers": [{"label": "instance", "operator": "=", "value": "gpu-7"}]},
            request_only=True,
        )
    ]
)
class MatchersSerializer(serializers.Serializer[Any]):
    """Matchers to be tried."""

    matchers = MatcherSerializer(many=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """Open alerts that matchers match."""

    count = serializers.IntegerField()
    alerts = AlertSerializer(many=True)


class ChannelSerializer(serializers.ModelSerializer[Channel]):
    """A channel, without its secrets."""

    kind = serializers.ChoiceField(choices=ChannelKind.values)
    settings = serializers.SerializerMethodField(help_text="Those that are no secret.")
    matchers = MatcherSerializer(many=True)

    class Meta:
        model = Channel
        fields = [
            "id",
            "name",
            "kind",
            "target",
            "settings",
            "matchers",
            "enabled",
            "disabled_reason",
            "disabled_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.DictField())
    def get_settings(self, channel: Channel) -> dict[str, Any]:
        """Leave out what is secret."""
        return shown_settings(channel)


@extend_schema_serializer(examples=[_CHANNEL_EXAMPLE])
class NewChannelSerializer(serializers.Serializer[Any]):
    """A channel to be made, or what one is to become; secrets that are left out stay."""

    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=ChannelKind.values)
    settings = serializers.DictField(
        help_text="Fields of the kind: webhook: url, signing_key, authorization; "
        "slack: token, channel; email: to, sender, host, port, security, username, password."
    )
    matchers = MatcherSerializer(many=True, default=list)


@extend_schema_serializer(
    examples=[OpenApiExample("Moved", value={"reason": "The webhook moves to another host."}, request_only=True)]
)
class DisableSerializer(serializers.Serializer[Any]):
    """Why a channel is disabled."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class AttemptSerializer(serializers.ModelSerializer[DeliveryAttempt]):
    """One attempt."""

    class Meta:
        model = DeliveryAttempt
        fields = ["at", "took_s", "ok", "status", "detail"]
        read_only_fields = fields


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One notification and its attempts."""

    occasion = serializers.ChoiceField(choices=Occasion.values)
    state = serializers.ChoiceField(choices=DeliveryState.values)
    summary = serializers.CharField(source="alert.summary", default=None, allow_null=True)
    log = AttemptSerializer(many=True)

    class Meta:
        model = Delivery
        fields = [
            "id",
            "alert",
            "summary",
            "occasion",
            "state",
            "attempts",
            "due_at",
            "last_error",
            "created_at",
            "settled_at",
            "log",
        ]
        read_only_fields = fields


class KindSerializer(serializers.Serializer[Any]):
    """A kind of alert: what it means, what to do, and its limits."""

    name = serializers.CharField()
    title = serializers.CharField()
    meaning = serializers.CharField()
    what_to_do = serializers.ListField(child=serializers.CharField())
    enabled = serializers.BooleanField()
    limits = serializers.DictField(help_text="Those in force.")
    default_limits = serializers.DictField()
    limit_docs = serializers.DictField(
        child=serializers.CharField(), help_text="What each limit means, and what it may be."
    )


@extend_schema_serializer(examples=[OpenApiExample("Off", value={"enabled": False, "limits": {}}, request_only=True)])
class KindSettingsSerializer(serializers.Serializer[Any]):
    """Whether a kind is looked for, and limits that differ from the defaults."""

    enabled = serializers.BooleanField(
        default=True,
        help_text="A kind that is not looked for raises nothing, and what it has raised resolves by itself.",
    )
    limits = serializers.DictField(default=dict, help_text="By name; `limit_docs` of the kind says what each means.")
