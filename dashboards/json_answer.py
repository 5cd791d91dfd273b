"""A struct as a JSON answer."""

import msgspec
from django.http import HttpResponse


def json_answer(value: msgspec.Struct) -> HttpResponse:
    """Return a struct as JSON."""
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")
