"""A weighting policy: which scorer, with which exponents. One immutable revision of it."""

from collections.abc import Mapping

import msgspec

from router.core.terms import AboveCap, ColdStart, EqualizeTtft, HotspotRule, LoadAdaptive, SpotRule

DEFAULT_SCORER = "multiplicative"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a policy; the default is the plain product, with every optional term off.

    Only exponents can weight a product (a constant factor cancels in the comparison), so weights are ``a`` and ``b``.
    """

    name: str = "default"
    revision: int = 1
    scorer: str = DEFAULT_SCORER
    a: float = 1.0
    """Exponent of P-token (>= 0)."""
    b: float = 1.0
    """Exponent of BS (>= 0)."""
    c: float | None = None
    """Exponent of BS on the queued part alone (>= 0); None means ``b``, which is the plain product."""
    normalize_hardware: bool = False
    """Divide P-token by the prefill rate and multiply BS by the decode cost of each instance's profile."""
    observed_hardware: bool = False
    """With ``normalize_hardware``: by what was observed of each instance, once that is enough, instead of its
    profile."""
    equalize_ttft: EqualizeTtft | None = None
    """With ``normalize_hardware``: learn from observed first-token times until all kinds of hardware answer alike."""
    params: Mapping[str, float] = {}
    """Parameters of the scorer; names and defaults are in the scorer registry."""
    p_token_cap: int | None = None
    """Instances with more P-token than this (>= 1) are out."""
    above_cap: AboveCap = AboveCap.LEAST_BAD
    """What happens when every instance is above the cap."""
    load_adaptive: LoadAdaptive | None = None
    """Lower an exponent at high load."""
    cold_start: ColdStart | None = None
    """Go easy on instances that are new or lost their cache."""
    hotspot: HotspotRule | None = None
    """Move prefix classes on that overload the few instances that hold them."""
    spot: SpotRule | None = None
    """Use instances that may be preempted less, or not at all."""

    @property
    def plain(self) -> bool:
        """Whether every optional term is off that filters or weighs instances at any time (a hotspot is an event)."""
        # Asked at every decision, so without a loop.
        return self.cold_start is None and self.p_token_cap is None and self.spot is None and self.equalize_ttft is None

    @property
    def label(self) -> str:
        """``name@revision``, as answers and records carry it."""
        return f"{self.name}@{self.revision}"
