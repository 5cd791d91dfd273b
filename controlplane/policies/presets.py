"""Contents to begin a policy with. Only the ratio of the exponents matters to which instance wins."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """A named content and what it is for."""

    name: str
    meaning: str
    content: Mapping[str, Any] = field(default_factory=dict)


PRESETS = (
    Preset("balanced", "The plain product, P-token x BS: the right one unless you know better."),
    Preset(
        "ttft-sensitive",
        "The first token matters most: prefill weighs more than the requests there (a = 1, b = 0.5).",
        {"a": 1.0, "b": 0.5},
    ),
    Preset(
        "tpot-sensitive",
        "A steady stream matters most: the requests there weigh more than prefill (a = 0.5, b = 1).",
        {"a": 0.5, "b": 1.0},
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
)
