"""What differs between two contents of a policy."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One field that differs, as JSON texts."""

    field: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the fields in which two complete contents differ, in the order of the first."""
    fields = [*before, *(field for field in after if field not in before)]
    return tuple(
        Difference(field, json.dumps(before.get(field)), json.dumps(after.get(field)))
        for field in fields
        if before.get(field) != after.get(field)
    )
