"""How two contents of a policy differ, as people read it: a whole term that is off is one line, not one a field."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from controlplane.policies.content import complete
from controlplane.policies.diff import FieldChange, diff
from dashboards.record_diff import Difference, difference

OFF = "off"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return what differs, in the order of the fields.

    :raises Invalid: when one of the two cannot be.
    """
    return tuple(_written(diff(before, after), complete(before), complete(after)))


def _written(found: Sequence[FieldChange], old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for term, group in groupby(found, key=lambda change: change.field.partition(".")[0]):
        fields = list(group)
        if isinstance(old[term], Mapping) and new[term] is None:
            yield Difference(term, _of_term(old[term]), OFF)
        elif isinstance(new[term], Mapping) and old[term] is None:
            yield Difference(term, OFF, _of_term(new[term]))
        else:
            yield from (_of_field(change) for change in fields)


def _of_term(content: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {OFF if value is None else value}" for name, value in content.items())


def _of_field(change: FieldChange) -> Difference:
    written = difference(change.field, change.before, change.after)
    before = OFF if change.before is None else written.before
    return Difference(change.field, before, OFF if change.after is None else written.after)
