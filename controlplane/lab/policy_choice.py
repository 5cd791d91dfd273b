"""Policies by how one names them: a scorer with parameters, or a stored policy."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from controlplane.errors import Invalid, NotFound
from controlplane.policies import selectors
from controlplane.policies.content import parse
from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.sim.policy_text import parse_policy

STORED = "policy:"


def resolve(choices: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the content of each policy by its label: what was written, or ``NAME@REVISION`` of a stored one.

    :raises Invalid: saying what is wrong with which.
    """
    found: dict[str, dict[str, Any]] = {}
    faults = []
    for choice in choices:
        try:
            label, content = _resolve_one(choice.strip())
        except (InvalidPolicy, NotFound, Invalid) as error:
            faults.append(f"{choice}: {error}")
            continue
        if label in found:
            faults.append(f"{label} is named twice.")
        found[label] = content
    if faults:
        raise Invalid({"policies": faults})
    return found


def policies_of(contents: Mapping[str, Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Return the policies that :func:`resolve` found, named by their labels."""
    return tuple(parse(content, name=label, revision=1) for label, content in contents.items())


def _resolve_one(choice: str) -> tuple[str, dict[str, Any]]:
    if not choice.startswith(STORED):
        whole: dict[str, Any] = msgspec.to_builtins(parse_policy(choice))
        defaults = msgspec.to_builtins(Policy())
        content = {key: value for key, value in whole.items() if key not in {"name", "revision"}}
        return choice, {key: value for key, value in content.items() if value != defaults[key]}
    name, at, number = choice.removeprefix(STORED).partition("@")
    policy = selectors.policy_named(name)
    revision = policy.live
    if at:
        revision = policy.revisions.filter(number=int(number)).first() if number.isdecimal() else None
    if revision is None:
        raise NotFound(f"It has no revision {number or 'that is live'}.")
    return f"{name}@{revision.number}", dict(revision.content)
