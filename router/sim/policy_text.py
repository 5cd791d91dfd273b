"""Policies as one writes them on a command line: ``scorer[:name=value]...``.

``a``, ``b``, ``c`` are the exponents, ``normalize=1`` turns normalised scoring on; every other name is a parameter of
the scorer, as in ``linear:L=0.55``.
"""

from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.scorers import check_policy

_EXPONENTS = frozenset({"a", "b", "c"})


def parse_policy(text: str) -> Policy:
    """Read one policy; its name is the text itself.

    :raises InvalidPolicy: naming what is wrong.
    """
    scorer, *settings = text.strip().split(":")
    exponents: dict[str, float] = {}
    params: dict[str, float] = {}
    normalize = False
    for setting in settings:
        name, equals, written = setting.partition("=")
        try:
            value = float(written)
        except ValueError:
            raise InvalidPolicy(f"{text}: {written!r} is not a number") from None
        if not equals:
            raise InvalidPolicy(f"{text}: {setting!r} is not name=value")
        if name == "normalize":
            normalize = bool(value)
        elif name in _EXPONENTS:
            exponents[name] = value
        else:
            params[name] = value
    policy = Policy(
        name=text.strip(),
        scorer=scorer,
        a=exponents.get("a", 1.0),
        b=exponents.get("b", 1.0),
        c=exponents.get("c"),
        normalize_hardware=normalize,
        params=params,
    )
    check_policy(policy)
    return policy


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
