"""What differs between two contents of a policy, field by field. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.policies.content import complete


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field; nested fields are named with dots. None is "off"."""

    field: str
    before: Any
    after: Any


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields that differ, as they act (a default that is spelled out is no difference).

    :raises Invalid: when one of the two cannot be.
    """
    old, new = dict(_flat(complete(before), "")), dict(_flat(complete(after), ""))
    names = dict.fromkeys([*old, *new])
    return [FieldChange(n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)]


def _flat(content: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
