"""The balance between kinds of hardware: how much harder long prefill is judged on some of them."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from router.core.candidate import Candidate


class Balance(msgspec.Struct, frozen=True, gc=False):
    """What was learnt from observed first-token times.

    On a kind of hardware the score is multiplied with ``(prefill seconds there / reference)^exponent``: prompts that
    would take longer than the reference avoid the kinds that answer late, and short ones are drawn to them. A constant
    factor would only send fewer of the same prompts there, and leave their first tokens as late as they are.
    """

    reference_s: float
    """Time to first token in the middle of the kinds, in seconds (above 0)."""
    exponents: Mapping[str, float]
    """By the name of the hardware profile (>= 0); kinds that are not named have 0."""


def balanced(candidates: Sequence[Candidate], balance: Balance) -> list[Candidate]:
    """Weigh the candidates of the kinds that have an exponent; a candidate without a profile is left alone."""
    return [_weighed(candidate, balance) for candidate in candidates]


def _weighed(candidate: Candidate, balance: Balance) -> Candidate:
    hardware = candidate.view.hardware
    exponent = 0.0 if hardware is None else balance.exponents.get(hardware.name, 0.0)
    if hardware is None or exponent == 0:
        return candidate
    prefill_s = candidate.p_token / hardware.prefill_tokens_per_s
    return replace(candidate, factor=candidate.factor * (prefill_s / balance.reference_s) ** exponent)
