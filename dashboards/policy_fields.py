"""The fields of a policy as the editor shows them; a test compares them with the policy itself."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from controlplane.policies.presets import GENTLE_COLD_START
from router.core.scorers import SCORERS
from router.core.terms import AboveCap


class Kind(StrEnum):
    """How a field is edited."""

    NUMBER = "number"
    CHOICE = "choice"
    SWITCH = "switch"
    TERM = "term"
    """On or off here; its constants in the JSON."""
    VARIANT = "variant"
    """A term with several named sets of constants; others in the JSON."""
    OBJECT = "object"
    """Only in the JSON."""


class Variant(NamedTuple):
    """A term with some constants, by a name that people know."""

    label: str
    content: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The content as the editor's script reads it."""
        return json.dumps(self.content)


class PolicyField(NamedTuple):
    """One field."""

    key: str
    label: str
    help: str
    kind: Kind
    default: str = ""
    choices: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()


FIELDS = (
    PolicyField("scorer", "Scorer", "The rule; the plain product is ours", Kind.CHOICE, "multiplicative", (*SCORERS,)),
    PolicyField("a", "a", "Exponent of P-token: higher avoids prefill, in favour of cache hits", Kind.NUMBER, "1"),
    PolicyField("b", "b", "Exponent of BS: higher avoids busy instances", Kind.NUMBER, "1"),
    PolicyField("c", "c", "Exponent of BS on the queued part alone; empty means b", Kind.NUMBER),
    PolicyField("p_token_cap", "P-token cap", "Instances above it are out; empty means none", Kind.NUMBER),
    PolicyField(
        "above_cap", "Above the cap", "When every instance is", Kind.CHOICE, AboveCap.LEAST_BAD, tuple(AboveCap)
    ),
    PolicyField(
        "normalize_hardware", "Normalise hardware", "Count seconds instead of tokens, for unequal GPUs", Kind.SWITCH
    ),
    PolicyField(
        "observed_hardware", "Observed hardware", "With normalised hardware: by what each was seen to do", Kind.SWITCH
    ),
    PolicyField(
        "equalize_ttft", "Equal first tokens", "With normalised hardware: learn until all kinds answer alike", Kind.TERM
    ),
    PolicyField("load_adaptive", "High load", "Lower an exponent while the fleet is busy", Kind.TERM),
    PolicyField(
        "cold_start",
        "Cold start",
        "Go easy on instances with an empty cache",
        Kind.VARIANT,
        variants=(Variant("gentle (recommended)", GENTLE_COLD_START), Variant("as published", {})),
    ),
    PolicyField("hotspot", "Hotspots", "Move prefix classes on that overload their holders", Kind.TERM),
    PolicyField("spot", "Spot instances", "Use instances that may be taken away less", Kind.TERM),
    PolicyField("params", "Parameters", "Of the scorer, by name", Kind.OBJECT),
)
