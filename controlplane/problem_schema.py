"""How the OpenAPI document describes errors."""

from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

_JSON = "application/problem+json"


class FieldFaultSerializer(serializers.Serializer[Any]):
    """One field and what is wrong with it."""

    field = serializers.CharField()
    message = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457); `code` is stable."""

    type = serializers.CharField(help_text="urn:pointsman:problem:CODE")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = FieldFaultSerializer(  # type: ignore[assignment]  # declared fields leave the class
        many=True, required=False, help_text="Only of code `invalid`."
    )


def _response(description: str) -> OpenApiResponse:
    return OpenApiResponse(ProblemSerializer, description)


@dataclass(frozen=True, slots=True)
class _Problems:
    read: dict[Any, Any]
    change: dict[Any, Any]


def _keyed(responses: dict[int, str]) -> dict[Any, Any]:
    return {(status, _JSON): _response(text) for status, text in responses.items()}


_READ = {
    400: "A value cannot be.",
    401: "No or no valid credentials.",
    403: "The scope is missing.",
    404: "No such thing.",
    406: "Only JSON is produced.",
}
_CHANGE = _READ | {
    409: "Not now: a conflict with the present state.",
    412: "Changed since it was read.",
    415: "Only JSON is read.",
    428: "If-Match is required.",
}
PROBLEMS = _Problems(_keyed(_READ), _keyed(_CHANGE))
"""Responses for endpoints that read, and for those that change something."""
