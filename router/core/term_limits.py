"""The ranges of the optional terms of a policy, as a table, and who is outside of them."""

from collections.abc import Iterator
from math import isfinite

import msgspec

from router.core.policy import DEFAULT_SCORER, Policy
from router.core.terms import MOST_COLD_START_S, MOST_WINDOW_S


class Range(msgspec.Struct, frozen=True):
    """Numbers from ``low`` (or just above it, when ``open_low``) to ``high``; None is unbounded."""

    low: float
    high: float | None = None
    open_low: bool = False

    def holds(self, value: float) -> bool:
        """Say whether a value is inside; NaN and infinity never are."""
        above = value > self.low if self.open_low else value >= self.low
        return isfinite(value) and above and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.open_low else f"at least {self.low:g}"
        return low if self.high is None else f"{low} and at most {self.high:g}"


RANGES = {
    "p_token_cap": Range(1),
    "load_adaptive.threshold": Range(0, 1, open_low=True),
    "load_adaptive.hysteresis": Range(0, 1),
    "load_adaptive.factor": Range(0, 1),
    "load_adaptive.max_batch": Range(1),
    "cold_start.duration_s": Range(0, MOST_COLD_START_S, open_low=True),
    "cold_start.bs_cap_share": Range(0, open_low=True),
    "cold_start.bs_floor_share": Range(0),
    "cold_start.p_offset": Range(0),
    "cold_start.warm_share": Range(0, 1, open_low=True),
    "hotspot.class_tokens": Range(1),
    "hotspot.window_s": Range(10, MOST_WINDOW_S),
    "hotspot.factor": Range(0),
    "hotspot.max_duration_s": Range(0, open_low=True),
    "equalize_ttft.gain": Range(0, 1, open_low=True),
    "equalize_ttft.tolerance": Range(0, 1),
    "equalize_ttft.limit": Range(0, 4, open_low=True),
    "equalize_ttft.samples": Range(1, 10_000),
    "spot.factor": Range(0, open_low=True),
}


def term_faults(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong) for the optional terms of a policy; each text begins with the field's name."""
    for path, allowed in RANGES.items():
        value = _value(policy, path)
        if value is not None and not allowed.holds(value):
            yield path.partition(".")[0], f"{path} is {value}, but must be {allowed}"
    needs = f"it needs normalize_hardware and scorer {DEFAULT_SCORER}"
    is_normalized = policy.normalize_hardware and policy.scorer == DEFAULT_SCORER
    if policy.observed_hardware and not is_normalized:
        yield "observed_hardware", f"observed_hardware refines normalised scores: {needs}"
    if policy.equalize_ttft is not None and not is_normalized:
        yield "equalize_ttft", f"equalize_ttft corrects normalised scores: {needs}"
    if policy.scorer != DEFAULT_SCORER:
        yield from _faults_beside(policy)


def _faults_beside(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the faults of terms that only the default scorer has."""
    if policy.load_adaptive is not None:
        yield "load_adaptive", f"load_adaptive lowers an exponent, which scorer {policy.scorer} does not have"
    if policy.spot is not None and policy.spot.factor != 1 and not policy.spot.refuse:
        weighted = f"but scorer {policy.scorer} cannot be weighted: it must be 1"
        yield "spot", f"spot.factor is {policy.spot.factor}, {weighted}"


def _value(policy: Policy, path: str) -> float | None:
    """Return the value of a dotted field; None where its term is off."""
    value: object = policy
    for name in path.split("."):
        if value is None:
            return None
        value = getattr(value, name)
    return value if isinstance(value, int | float) else None
