"""A model behind an alias: a value, and what may not be said of it."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from controlplane.errors import Invalid

MODEL_NAME = re.compile(r"\S{1,300}")
MOST_NAME_CHARS = 200
"""Of an alias: what the audit log holds of a name."""
MOST_TARGETS = 64
MOST_WEIGHT = 1_000_000.0


class Target(NamedTuple):
    """A model, and its weight beside those of the others."""

    model: str
    weight: float = 1.0


def shares(targets: Sequence[Target]) -> tuple[float, ...]:
    """Return each target's share of the requests, 0..1."""
    total = sum(target.weight for target in targets)
    return tuple(target.weight / total for target in targets)


def check_targets(targets: Sequence[Target]) -> None:
    """Refuse targets that cannot be.

    :raises Invalid: naming every one that is at fault, by its place.
    """
    faults = _faults(targets)
    if faults:
        raise Invalid(faults)


def _faults(targets: Sequence[Target]) -> Mapping[str, list[str]]:
    if not 1 <= len(targets) <= MOST_TARGETS:
        return {"targets": [f"There must be 1 to {MOST_TARGETS} models, not {len(targets)}."]}
    faults: defaultdict[str, list[str]] = defaultdict(list)
    times = Counter(target.model for target in targets)
    for place, target in enumerate(targets):
        if not MODEL_NAME.fullmatch(target.model):
            faults[f"targets.{place}.model"].append("It must be 1 to 300 characters without spaces.")
        elif times[target.model] > 1:
            faults[f"targets.{place}.model"].append(f"{target.model} is named twice; give it one weight.")
        if not (isfinite(target.weight) and 0 < target.weight <= MOST_WEIGHT):
            faults[f"targets.{place}.weight"].append(f"It must be above 0 and at most {MOST_WEIGHT:,.0f}.")
    return faults
