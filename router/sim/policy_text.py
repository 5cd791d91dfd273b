"""Policies as one writes them on a command line: ``scorer[:name=value]...``.

``a``, ``b``, ``c`` are the exponents, ``normalize=1`` turns normalised scoring on. An optional term is turned on by
its name, ``hotspot=1``, or by a field of it, ``hotspot.factor=3``; ``p_token_cap`` and ``above_cap`` are fields of
their own. Every other name is a parameter of the scorer, as in ``linear:L=0.55``.
"""

from typing import Any

import msgspec

from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.scorers import check_policy

_EXPONENTS = frozenset({"a", "b", "c"})
_TERMS = frozenset({"load_adaptive", "cold_start", "hotspot", "spot", "equalize_ttft"})
_FIELDS = _EXPONENTS | {"p_token_cap", "above_cap"}


def parse_policy(text: str) -> Policy:
    """Read one policy; its name is the text itself.

    :raises InvalidPolicy: naming what is wrong.
    """
    scorer, *settings = text.strip().split(":")
    content: dict[str, Any] = {"name": text.strip(), "scorer": scorer, "params": {}}
    for setting in settings:
        name, equals, written = setting.partition("=")
        if not equals:
            raise InvalidPolicy(f"{text}: {setting!r} is not name=value")
        _set(content, name, written)
    try:
        policy = msgspec.convert(content, type=Policy, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidPolicy(f"{text}: {error}") from None
    check_policy(policy)
    return policy


def _set(content: dict[str, Any], name: str, written: str) -> None:
    term, dot, field = name.partition(".")
    if name == "normalize":
        content["normalize_hardware"] = written
    elif name in _TERMS:
        content[name] = {} if written == "1" else written
    elif dot and term in _TERMS:
        content.setdefault(term, {})[field] = written
    elif name in _FIELDS:
        content[name] = written
    else:
        content["params"][name] = _number(written)


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise InvalidPolicy(f"{written!r} is not a number") from None


def parse_policies(text: str) -> list[Policy]:
    """Read several policies, separated by commas.

    :raises InvalidPolicy: naming what is wrong, or when there is none or one twice.
    """
    policies = [parse_policy(part) for part in text.split(",") if part.strip()]
    if not policies:
        raise InvalidPolicy("no policy was named")
    names = [policy.name for policy in policies]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidPolicy(f"named twice: {', '.join(repeated)}")
    return policies
