"""What a request body says: the members of its JSON object, or the model that a form names.

Bodies may be large and are read between the requests of others: whatever their bytes, the work for each is bounded.
"""

import re
from itertools import islice
from typing import Any

import orjson

from router.proxy.errors import BadRequest

MOST_VALUES = 2_000_000
"""JSON values in a body, counted by commas and brackets: decoded, they take up to 35 times their bytes."""
_OPENINGS = (b",", b"[", b"{")
_FORM_NAME = re.compile(rb'name="?model"?\r\n')
_FORM_VALUE = re.compile(rb"(?:[^\r\n]{1,1024}+\r\n){0,8}+\r\n([^\r\n]{1,256})\r\n")
_MOST_FORM_NAMES = 16
"""A file in a form may look like its fields; this often it is looked into."""


def json_fields(body: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    :raises BadRequest: when it is none, or holds too much.
    """
    if len(body) > MOST_VALUES and sum(map(body.count, _OPENINGS)) > MOST_VALUES:
        raise BadRequest(
            f"by its commas and brackets the body holds more than {MOST_VALUES} JSON values",
            status=413,
            code="too_many_values",
        )
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(fields, dict):
        raise BadRequest("the body is not a JSON object", code="invalid_json")
    return fields


def form_model(body: bytes) -> str | None:
    """Return the model that a form (multipart/form-data) names, or None."""
    for name in islice(_FORM_NAME.finditer(body), _MOST_FORM_NAMES):
        value = _FORM_VALUE.match(body, name.end())
        if value is not None:
            return value[1].decode("utf-8", "replace")
    return None
