"""What policies and workloads look like in JSON."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from controlplane.field_docs import field_docs
from controlplane.policies.content import complete
from controlplane.policies.models import Policy, PolicyRevision, ShadowHour, Workload
from router.config import WorkloadConfig


class RevisionSerializer(serializers.ModelSerializer[PolicyRevision]):
    """One revision."""

    content = serializers.SerializerMethodField(help_text="Every field as it acts, defaults included.")

    class Meta:
        model = PolicyRevision
        fields = ["number", "content", "message", "author", "created_at", "restores"]
        read_only_fields = fields

    @extend_schema_field(serializers.DictField())
    def get_content(self, revision: PolicyRevision) -> dict[str, Any]:
        """Return the whole content."""
        return complete(revision.content)


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """A policy: what is live, and the draft of what may be next."""

    live = RevisionSerializer(allow_null=True)
    draft = serializers.DictField(allow_null=True)

    class Meta:
        model = Policy
        fields = ["id", "name", "description", "live", "draft", "draft_base", "draft_author", "draft_at", "created_at"]
        read_only_fields = fields


@extend_schema_serializer(
    examples=[OpenApiExample("Heavier prefill", value={"content": {"a": 1.5, "b": 1.0}}, request_only=True)]
)
class ContentSerializer(serializers.Serializer[Any]):
    """The content of a policy; what is left out has its default."""

    content = serializers.DictField(help_text="Fields of a policy: scorer, a, b, c, ...")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "For chats",
            value={
                "name": "chat",
                "description": "Short prompts.",
                "content": {"a": 1.0, "b": 0.5},
                "message": "First try.",
            },
            request_only=True,
        )
    ]
)
class NewPolicySerializer(ContentSerializer):
    """A policy to be made; its first revision is live at once."""

    name = serializers.CharField(
        max_length=64,
        help_text="1 to 64 letters, digits or . _ -; answers carry it in `x-pointsman-policy`. It stays as it is.",
    )
    description = serializers.CharField(max_length=10_000, allow_blank=True, default="")
    message = serializers.CharField(max_length=10_000, allow_blank=True, default="")


@extend_schema_serializer(
    examples=[OpenApiExample("The draft", value={"message": "TTFT of chats was too high."}, request_only=True)]
)
class PublicationSerializer(serializers.Serializer[Any]):
    """Publishing: the draft, or the content that is sent."""

    message = serializers.CharField(max_length=10_000, help_text="Why; others read it in the history.")
    content = serializers.DictField(allow_null=True, default=None)


@extend_schema_serializer(
    examples=[OpenApiExample("Back to the first", value={"to": 1, "message": "No better."}, request_only=True)]
)
class RollbackSerializer(serializers.Serializer[Any]):
    """Going back."""

    message = serializers.CharField(max_length=10_000, help_text="Why; others read it in the history.")
    to = serializers.IntegerField(min_value=1, max_value=2**31 - 1, help_text="Number of the revision to bring back.")


class MatchSerializer(serializers.Serializer[Any]):
    """How a request is recognised; every kind that is named must hold. A pattern may end with `*`."""

    headers = serializers.DictField(child=serializers.CharField(max_length=1000), required=False)
    tenants = serializers.ListField(child=serializers.CharField(max_length=64), required=False, max_length=1000)
    models = serializers.ListField(child=serializers.CharField(max_length=300), required=False, max_length=1000)
    paths = serializers.ListField(child=serializers.CharField(max_length=300), required=False, max_length=100)


class WorkloadSerializer(serializers.ModelSerializer[Workload]):
    """A workload."""

    policy = serializers.CharField(source="policy.name")
    shadow_policy = serializers.CharField(source="shadow_policy.name", default=None, allow_null=True)
    match = MatchSerializer()
    is_default = serializers.BooleanField()

    class Meta:
        model = Workload
        fields = [
            "id",
            "name",
            "description",
            "position",
            "match",
            "policy",
            "shadow_policy",
            "concurrent",
            "is_default",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Another policy",
            value={"policy": "chat", "match": {"models": ["qwen*"], "headers": {"x-team": "search"}}},
            request_only=True,
        ),
        OpenApiExample("At most 16 at once in each worker", value={"concurrent": 16}, request_only=True),
    ]
)
class WorkloadChangeSerializer(serializers.Serializer[Any]):
    """What may be set."""

    description = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, help_text="For people; nothing reads it."
    )
    position = serializers.IntegerField(
        min_value=0, max_value=2**31 - 2, required=False, help_text="Rules are tried in this order, then by name."
    )
    match = MatchSerializer(
        required=False,
        help_text="How its requests are recognised: `headers`, `tenants`, `models`, `paths`; all that are named must "
        "hold, and a pattern may end with `*`. Empty: only by the name in `x-pointsman-workload`.",
    )
    policy = serializers.CharField(max_length=64, help_text="Name of the policy that routes it, by what is live of it.")
    shadow_policy = serializers.CharField(
        max_length=64,
        allow_null=True,
        required=False,
        help_text="Decides as well, without being obeyed; how often it would have chosen another instance is counted.",
    )
    concurrent = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        allow_null=True,
        required=False,
        help_text=field_docs(WorkloadConfig)["concurrent"],
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Chats", value={"name": "chat", "policy": "default", "match": {"paths": ["/v1/chat/*"]}}, request_only=True
        ),
        OpenApiExample(
            "Batch jobs that leave room for others",
            value={"name": "batch", "policy": "default", "match": {"tenants": ["nightly"]}, "concurrent": 16},
            request_only=True,
        ),
    ]
)
class NewWorkloadSerializer(WorkloadChangeSerializer):
    """A workload to be made."""

    name = serializers.CharField(
        max_length=64, help_text="1 to 64 letters, digits or . _ -; requests may name it in `x-pointsman-workload`."
    )


class ShadowHourSerializer(serializers.ModelSerializer[ShadowHour]):
    """How often a shadow policy would have gone elsewhere in one hour."""

    class Meta:
        model = ShadowHour
        fields = [
            "hour",
            "live_policy",
            "shadow_policy",
            "decisions",
            "differs",
            "prompt_tokens",
            "live_hit_tokens",
            "shadow_hit_tokens",
            "live_product",
            "shadow_product",
        ]
        read_only_fields = fields
