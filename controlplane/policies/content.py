"""The content of a policy revision: plain JSON whose fields are exactly those of :class:`router.core.policy.Policy`.

A field that is left out has its documented default, which leaves that term of the score off. Nothing else is filled in,
and nothing unknown is let through.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from controlplane.errors import Invalid
from controlplane.plain_words import in_plain_words
from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.scorers import check_policy

_IDENTITY = ("name", "revision")
"""Fields that the row knows, not the content."""


def field_names() -> tuple[str, ...]:
    """Return the names of all fields that a policy may set."""
    return tuple(f.name for f in msgspec.structs.fields(Policy) if f.name not in _IDENTITY)


def parse(content: Mapping[str, Any], *, name: str, revision: int) -> Policy:
    """Return the policy that some content stands for.

    :raises Invalid: naming every field that is at fault.
    """
    faults = {key: ["There is no such field."] for key in content if key not in field_names()}
    known: dict[str, Any] = {}
    for key, value in content.items():
        if key in faults:
            continue
        try:
            known[key] = msgspec.convert(value, type=_type_of(key))
        except msgspec.ValidationError as error:
            faults[key] = [in_plain_words(error)]
    if faults:
        raise Invalid(faults)
    policy = Policy(name=name, revision=revision, **known)
    try:
        check_policy(policy)
    except InvalidPolicy as error:
        raise Invalid({error.field or "content": [str(error)]}) from error
    return policy


def complete(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content with every field present, as it acts.

    :raises Invalid: naming every field that is at fault.
    """
    whole: dict[str, Any] = msgspec.to_builtins(parse(content, name="default", revision=1))
    return {key: whole[key] for key in field_names()}


def _type_of(name: str) -> Any:
    return next(f.type for f in msgspec.structs.fields(Policy) if f.name == name)
