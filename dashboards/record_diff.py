"""What differs between two records of the audit log, and how a difference is written."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One field that differs, as JSON texts."""

    field: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the fields in which two records differ, in the order of the first."""
    fields = [*before, *(field for field in after if field not in before)]
    return tuple(
        difference(field, before.get(field), after.get(field))
        for field in fields
        if before.get(field) != after.get(field)
    )


def difference(field: str, before: Any, after: Any) -> Difference:
    """Return one difference of two JSON values."""
    return Difference(field, json.dumps(before, ensure_ascii=False), json.dumps(after, ensure_ascii=False))
