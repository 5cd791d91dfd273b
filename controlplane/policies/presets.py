"""Contents to begin a policy with. What the exponents of each do is measured in docs/scheduling.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.policies.content import parse
from router.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Preset:
    """A named content and what it is for."""

    name: str
    meaning: str
    content: Mapping[str, Any] = field(default_factory=dict)


GENTLE_COLD_START: Mapping[str, Any] = {"bs_floor_share": 0.5, "bs_cap_share": 1.0}
"""BS at a new instance counts as at least half of the others': what would hit elsewhere stays there."""

PRESETS = (
    Preset("balanced", "The plain product, P-token x BS: the right one unless you know better."),
    Preset(
        "ttft-sensitive",
        "The first token matters most: prefill, and above all queued prefill, weighs more than the requests there "
        "(a = 1, b = 0.5, c = 0.25).",
        {"a": 1.0, "b": 0.5, "c": 0.25},
    ),
    Preset(
        "tpot-sensitive",
        "A steady stream matters most: hits are kept at the price of waiting longer for some first tokens "
        "(a = 1, b = 1, c = 0.5).",
        {"a": 1.0, "b": 1.0, "c": 0.5},
    ),
    Preset(
        "overload-tolerant",
        "At high load cache hits are kept, which is what saves an overloaded fleet (c is lowered above 70 % load).",
        {"load_adaptive": {}},
    ),
    Preset(
        "mixed-hardware",
        "Unequal GPUs: the score is in seconds of each one's own speed, and learns until all kinds answer alike.",
        {"normalize_hardware": True, "equalize_ttft": {}},
    ),
    Preset(
        "gentle-start",
        "New instances start gently: what would hit elsewhere stays there until they have a cache.",
        {"cold_start": GENTLE_COLD_START},
    ),
    Preset(
        "protected",
        "The plain product that looks after itself: hot prefixes are spread, new instances start gently.",
        {"hotspot": {}, "cold_start": GENTLE_COLD_START},
    ),
)


def preset_policies() -> list[Policy]:
    """Return the presets as policies that nobody has published: their revision is 0."""
    return [parse(preset.content, name=preset.name, revision=0) for preset in PRESETS]
