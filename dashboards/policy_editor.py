"""What the policy editor shows: a content being edited, what is wrong with it, and how it differs from the live one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from controlplane.errors import Invalid
from controlplane.policies.content import parse
from controlplane.policies.models import Policy, PolicyRevision
from dashboards.policy_changes import changes
from dashboards.policy_fields import FIELDS, Kind, PolicyField
from dashboards.record_diff import Difference
from router.core.policy import Policy as RoutingPolicy


@dataclass(frozen=True, slots=True)
class Editing:
    """A content in the editor; ``expected`` is the live revision that its author has seen."""

    text: str
    expected: int
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    conflict: PolicyRevision | None = None
    """The revision that somebody else published meanwhile."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One revision, and what it changed."""

    revision: PolicyRevision
    changes: tuple[Difference, ...]
    is_live: bool


class FieldLine(NamedTuple):
    """One field of the form, and what is wrong with it."""

    field: PolicyField
    faults: Sequence[str]
    is_first_fault: bool


def field_lines(faults: Mapping[str, Sequence[str]]) -> list[FieldLine]:
    """Return the fields that are edited in the form, each with its faults."""
    shown = [field for field in FIELDS if field.kind is not Kind.OBJECT]
    first = next((field.key for field in shown if field.key in faults), None)
    return [FieldLine(field, faults.get(field.key, ()), field.key == first) for field in shown]


def loose_faults(faults: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the faults that belong to no field of the form."""
    at_fields = {line.field.key for line in field_lines(faults)}
    return {name: texts for name, texts in faults.items() if name not in at_fields}


def begin_editing(policy: Policy) -> Editing:
    """Open the draft, or, without one, the live content."""
    live = policy.live
    content = policy.draft if policy.draft is not None else ({} if live is None else live.content)
    expected = policy.draft_base if policy.draft is not None and policy.draft_base is not None else live_number(policy)
    return Editing(pretty(content), expected)


def read_content(text: str) -> Mapping[str, Any]:
    """Return the content that a text stands for.

    :raises Invalid: when it is not a JSON object.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise Invalid({"JSON": [f"This is not JSON: {error}"]}) from error
    if not isinstance(content, dict):
        raise Invalid({"JSON": ["It must be an object: { ... }"]})
    return content


def routing_policy(text: str, name: str) -> RoutingPolicy:
    """Return the policy that a text stands for.

    :raises Invalid: naming every field that is at fault.
    """
    return parse(read_content(text), name=name, revision=1)


def changes_from_live(policy: Policy, text: str) -> tuple[Difference, ...]:
    """Return how a text differs from what is live.

    :raises Invalid: when it is no content of a policy.
    """
    return changes({} if policy.live is None else policy.live.content, read_content(text))


def history(policy: Policy) -> list[HistoryLine]:
    """Return the revisions, newest first, each with what it changed."""
    revisions = list(policy.revisions.all())
    lines = []
    for revision, older in zip(revisions, [*revisions[1:], None], strict=True):
        changed = () if older is None else changes(older.content, revision.content)
        lines.append(HistoryLine(revision, changed, revision == policy.live))
    return lines


def live_number(policy: Policy) -> int:
    """Return the number of the live revision, 0 without one."""
    return 0 if policy.live is None else policy.live.number


def pretty(content: Mapping[str, Any]) -> str:
    """Return content as people edit it."""
    return json.dumps(content, indent=2, ensure_ascii=False)
