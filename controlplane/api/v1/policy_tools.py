"""What helps before a policy is published: preview, diff, presets, and policies as YAML documents."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.v1.policies_serializers import PolicySerializer
from controlplane.errors import Invalid, NotFound
from controlplane.policies import selectors
from controlplane.policies.content import parse
from controlplane.policies.diff import diff
from controlplane.policies.document import dump, load
from controlplane.policies.models import Policy
from controlplane.policies.presets import PRESETS
from controlplane.policies.services import revisions
from controlplane.previews.selectors import preview
from controlplane.problem_schema import PROBLEMS

_TAG = ["policies"]
_YAML = "application/yaml"
_MOST_TOKENS = 10_000_000


@extend_schema_serializer(
    examples=[OpenApiExample("Fewer at once", value={"content": {"b": 1.5}, "prompt_tokens": 4000}, request_only=True)]
)
class PreviewRequestSerializer(serializers.Serializer[Any]):
    """The content to preview, and the length of the request to place on the present fleet."""

    content = serializers.DictField(
        allow_null=True, default=None, help_text="Null previews the draft, or else what is live."
    )
    prompt_tokens = serializers.IntegerField(min_value=1, max_value=_MOST_TOKENS, default=2000)


class RankedSerializer(serializers.Serializer[Any]):
    """One instance: its factors and score, or why it is out."""

    instance = serializers.CharField()
    p_token = serializers.IntegerField()
    bs = serializers.IntegerField()
    score = serializers.FloatField(allow_null=True)
    filtered = serializers.CharField(allow_null=True)


class FleetPreviewSerializer(serializers.Serializer[Any]):
    """One request that no instance holds anything of, on the fleet of this moment."""

    chosen = serializers.CharField(allow_null=True)
    candidates = RankedSerializer(many=True)
    fault = serializers.CharField(allow_null=True, help_text="Why the policy cannot score this fleet.")


class ShareSerializer(serializers.Serializer[Any]):
    """The requests of one instance."""

    instance = serializers.CharField()
    before = serializers.IntegerField()
    after = serializers.IntegerField()


class PredictedSerializer(serializers.Serializer[Any]):
    """Means from hardware profiles; null where an instance has none."""

    ttft_s = serializers.FloatField(allow_null=True)
    tpot_s = serializers.FloatField(allow_null=True)


class ReplayPreviewSerializer(serializers.Serializer[Any]):
    """Recently recorded requests, each decided again by itself, with the counters that it saw."""

    requests = serializers.IntegerField(help_text="Those that were decided again.")
    unknown = serializers.IntegerField(help_text="Requests of which something that the policy reads is not known.")
    reason = serializers.CharField(help_text="What that was for most of them; empty where there are none.")
    moved = serializers.IntegerField(help_text="Requests that would have gone elsewhere.")
    refused = serializers.IntegerField(help_text="Requests that would have found no instance.")
    shares = ShareSerializer(many=True)
    before = PredictedSerializer()
    after = PredictedSerializer()


class PolicyPreviewSerializer(serializers.Serializer[Any]):
    """What a policy would do."""

    now = FleetPreviewSerializer()
    recent = ReplayPreviewSerializer()


class FieldChangeSerializer(serializers.Serializer[Any]):
    """One field that differs; nested fields are named with dots, null is off."""

    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class DiffSerializer(serializers.Serializer[Any]):
    """What differs between two contents."""

    changes = FieldChangeSerializer(many=True)


class PresetSerializer(serializers.Serializer[Any]):
    """A content to begin with."""

    name = serializers.CharField()
    meaning = serializers.CharField()
    content = serializers.DictField()


class PresetsSerializer(serializers.Serializer[Any]):
    """All presets."""

    presets = PresetSerializer(many=True)


class PolicyPreviewView(APIView):
    """Preview."""

    read_scope = Scope.READ
    write_scope = Scope.READ

    @extend_schema(
        request=PreviewRequestSerializer, responses={200: PolicyPreviewSerializer} | PROBLEMS.read, tags=_TAG
    )
    def post(self, request: Request, name: str) -> Response:
        """Say what a content would do: on the present fleet, and to recent requests. Nothing is changed."""
        sent = PreviewRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        policy = selectors.policy_named(name)
        content = sent.validated_data["content"]
        candidate = parse(_present(policy) if content is None else content, name=name, revision=_live(policy) + 1)
        found = preview(candidate, sent.validated_data["prompt_tokens"])
        return Response(PolicyPreviewSerializer(msgspec.to_builtins(found)).data)


class PolicyDiff(APIView):
    """Differences."""

    read_scope = Scope.READ

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, description="A revision number, `live` (default) or `draft`."),
            OpenApiParameter("to", str, description="A revision number, `live` or `draft` (default)."),
        ],
        responses={200: DiffSerializer} | PROBLEMS.read,
        tags=_TAG,
    )
    def get(self, request: Request, name: str) -> Response:
        """Show which fields differ between two revisions, or between what is live and the draft."""
        policy = selectors.policy_named(name)
        before = _content(policy, request.query_params.get("from", "live"))
        after = _content(policy, request.query_params.get("to", "draft"))
        return Response({"changes": [asdict(change) for change in diff(before, after)]})


class PolicyPresets(APIView):
    """Presets."""

    read_scope = Scope.READ

    @extend_schema(responses={200: PresetsSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request) -> Response:
        """List contents to begin a policy with."""
        return Response({"presets": [asdict(preset) for preset in PRESETS]})


class YamlParser(BaseParser):
    """Hands the bytes on, under ``yaml``; the document is read by its own module."""

    media_type = _YAML

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, bytes]:
        """Return the body."""
        return {"yaml": stream.read()}


class YamlRenderer(BaseRenderer):
    """So that `Accept: application/yaml` is understood; documents are written by their own module."""

    media_type = _YAML
    format = "yaml"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Return errors as JSON, which is YAML too."""
        return bytes(JSONRenderer().render(data))


class PolicyDocumentView(APIView):
    """Policies as YAML."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    parser_classes = [YamlParser]
    renderer_classes = [JSONRenderer, YamlRenderer]

    @extend_schema(responses={(200, _YAML): OpenApiTypes.OBJECT} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> HttpResponse:
        """Export what is live as a YAML document."""
        policy = selectors.policy_named(name)
        if policy.live is None:
            raise NotFound(f"Policy {name} has nothing live.")
        text = dump(
            name=name,
            revision=policy.live.number,
            description=policy.description,
            content=policy.live.content,
        )
        return HttpResponse(text, content_type=_YAML)

    @extend_schema(
        request={_YAML: OpenApiTypes.OBJECT},
        responses={
            200: OpenApiResponse(PolicySerializer, "Kept as the draft."),
            201: OpenApiResponse(PolicySerializer, "A new policy, live at once."),
        }
        | PROBLEMS.change,
        tags=_TAG,
    )
    def put(self, request: Request, name: str) -> Response:
        """Bring a YAML document in: as the draft of the policy, or as a new one."""
        sent = request.data
        document = load(sent.get("yaml", b"") if isinstance(sent, Mapping) else b"")
        if document.name != name:
            raise Invalid({"name": [f"The document is about {document.name!r}, the path about {name!r}."]})
        policy, created = revisions.bring_in(
            actor=request_actor(request), document=document, message="Brought in as a document."
        )
        return Response(PolicySerializer(selectors.policy_named(policy.name)).data, status=201 if created else 200)


def _live(policy: Policy) -> int:
    return 0 if policy.live is None else policy.live.number


def _present(policy: Policy) -> Mapping[str, Any]:
    if policy.draft is not None:
        draft: Mapping[str, Any] = policy.draft
        return draft
    return _content(policy, "live")


def _content(policy: Policy, which: str) -> Mapping[str, Any]:
    """Return the content of the draft, of what is live, or of a revision by its number."""
    if which == "draft":
        if policy.draft is None:
            raise NotFound(f"Policy {policy.name} has no draft.")
        draft: Mapping[str, Any] = policy.draft
        return draft
    revision = policy.live if which == "live" else None
    if which.isascii() and which.isdigit() and len(which) < 10:
        revision = policy.revisions.filter(number=int(which)).first()
    if revision is None:
        raise NotFound(f"Policy {policy.name} has no revision {which!r}.")
    content: Mapping[str, Any] = revision.content
    return content
