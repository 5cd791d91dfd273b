"""``If-Match``: the revision that the caller has seen."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from controlplane.errors import Invalid

_TAG = re.compile(r'^(?:W/)?"?(\d{1,9})"?$')
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description='The live revision that you have seen, as in `"3"`; required (428), and refused when stale (412).',
)


def expected_revision(request: Request) -> int | None:
    """Return the revision that a request names, or None.

    :raises Invalid: when the header is not a revision.
    """
    text = request.headers.get("If-Match")
    if text is None:
        return None
    match = _TAG.match(text.strip())
    if match is None:
        raise Invalid({"If-Match": ['It must be a revision number, as in "3".']})
    return int(match[1])
