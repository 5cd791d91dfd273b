"""JSON whose every string a database can keep: no NUL (PostgreSQL refuses it), no half of a surrogate pair."""

import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

_UNKEPT = re.compile("[\0\ud800-\udfff]")


class TextParser(JSONParser):
    """Reads JSON whose every string can be kept."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return what a body says.

        :raises ParseError: when it is no JSON, or holds what cannot be kept.
        """
        try:
            found = super().parse(stream, media_type, parser_context)
            kept = _can_be_kept(found)
        except RecursionError as error:
            raise ParseError("It is nested too deeply.") from error
        if not kept:
            raise ParseError("NUL characters and halves of surrogate pairs cannot be kept.")
        return found


def _can_be_kept(value: Any) -> bool:
    if isinstance(value, str):
        return _UNKEPT.search(value) is None
    if isinstance(value, Mapping):
        return all(_can_be_kept(name) and _can_be_kept(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(_can_be_kept(inner) for inner in value)
