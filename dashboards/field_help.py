"""What a field of a form means, in the words of the REST schema: there is one description of each."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from rest_framework import serializers

from controlplane.api.v1.alerts_serializers import (
    AcknowledgementSerializer,
    AssignmentSerializer,
    CommentSerializer,
    KindSettingsSerializer,
)
from controlplane.api.v1.aliases_serializers import AliasSettingsSerializer, TargetSerializer
from controlplane.api.v1.people import NewPersonSerializer
from controlplane.api.v1.policies_serializers import (
    NewPolicySerializer,
    NewWorkloadSerializer,
    PublicationSerializer,
    RollbackSerializer,
)
from controlplane.api.v1.simulations_serializers import DraftSerializer, RecordingNameSerializer, TraceUploadSerializer
from controlplane.api.v1.slos import SloSettingsSerializer
from controlplane.api.v1.tenants import NewKeySerializer, NewTenantSerializer

_SCHEMAS: Mapping[str, type[serializers.Serializer[Any]]] = {
    "acknowledgement": AcknowledgementSerializer,
    "alias": AliasSettingsSerializer,
    "assignment": AssignmentSerializer,
    "comment": CommentSerializer,
    "draft": DraftSerializer,
    "key": NewKeySerializer,
    "kind": KindSettingsSerializer,
    "person": NewPersonSerializer,
    "policy": NewPolicySerializer,
    "publication": PublicationSerializer,
    "recording": RecordingNameSerializer,
    "rollback": RollbackSerializer,
    "slo": SloSettingsSerializer,
    "target": TargetSerializer,
    "tenant": NewTenantSerializer,
    "trace": TraceUploadSerializer,
    "workload": NewWorkloadSerializer,
}


@cache
def field_help(path: str) -> str:
    """Return what the schema says of ``SCHEMA.FIELD``.

    :raises KeyError: for a field that is not there, or that nobody has described.
    """
    schema, _, name = path.partition(".")
    text = _SCHEMAS[schema]().fields[name].help_text
    if not text:
        raise KeyError(f"{path} has no help text in the REST schema")
    return str(text)
