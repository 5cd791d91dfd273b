"""The optional terms of a policy: each is off unless a policy sets it, and has its constants as fields.

The constants are those of the method unless their text says otherwise. What a term needs to know beyond the policy,
such as the time or which classes are hot, arrives with each decision (:mod:`router.core.situation`).
"""

from enum import StrEnum

import msgspec

MOST_COLD_START_S = 3600.0
MOST_WINDOW_S = 600.0


class AboveCap(StrEnum):
    """What happens to a request for which every instance is above the policy's P-token cap."""

    LEAST_BAD = "least_bad"
    """It goes to the instance with the smallest P-token."""
    SHED = "shed"
    """It is refused, to be sent again later."""


class LoweredExponent(StrEnum):
    """Which exponent high load lowers."""

    C = "c"
    """That of BS on the queued part alone: hits are kept, which is what saves an overloaded fleet."""
    B = "b"
    """That of BS on everything."""


class Stage1(StrEnum):
    """Who may put a prefix class on watch."""

    ROUTER = "router"
    """The router by its own window, and the control plane by its list."""
    CONTROL_PLANE = "control_plane"
    """Only the control plane."""


class LoadAdaptive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At high load an exponent is lowered. Load is the larger of mean BS / ``max_batch`` and mean KV use, 0..1."""

    threshold: float = 0.7
    """Load (0..1) above which it is high."""
    hysteresis: float = 0.1
    """How far below the threshold load must fall until it is normal again."""
    factor: float = 0.75
    """What the exponent is multiplied with at high load (0..1)."""
    exponent: LoweredExponent = LoweredExponent.C
    max_batch: int = 256
    """Requests that an instance runs at once, where its hardware profile does not say (>= 1)."""


class ColdStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instances that joined, or lost their cache, take less for a while, and cost a little more."""

    duration_s: float = 300.0
    """How long at most (above 0)."""
    bs_cap_share: float = 0.5
    """Most requests there, as a share of the mean of the warm instances (above 0); one is always let in."""
    bs_floor_share: float = 0.0
    """BS there counts as at least this share of the mean of the warm ones (>= 0). Not of the method; see
    ``docs/hotspots.md``: 0.5 keeps requests away that would hit elsewhere."""
    p_offset: int = 10
    """Tokens added to P-token there (>= 0)."""
    warm_share: float = 1.0
    """Early end: the instance holds this share (above 0, at most 1) of the mean prefix blocks of the warm ones."""


class HotspotRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prefix class that draws more than its share of requests to the few instances that hold its prefix is moved on.

    Stage 1 puts a class on watch when its share of the arrivals in a sliding window, times the instances, exceeds
    those that hold its prefix. Stage 2, while watched: over more than ``factor`` times the holders consecutive
    requests of the class, none scored better outside the holders; then these are out for the class until it calms
    down.
    """

    stage1: Stage1 = Stage1.ROUTER
    class_tokens: int = 512
    """A class is what shares this many first tokens of a prompt, or fewer where less of it is shared (>= 1)."""
    window_s: float = 60.0
    """Length of the sliding window (10 to 600)."""
    factor: float = 2.0
    """Consecutive requests, as a multiple of the holders, that start the mitigation (>= 0)."""
    max_duration_s: float = 600.0
    """The longest that one mitigation lasts (above 0)."""


class EqualizeTtft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Correct normalised scores by observed times to first token, until all kinds of hardware answer alike.

    After each round of answers the exponent on prefill of a kind moves by ``gain`` times the logarithm of its mean over
    the middle of the kinds. Not of the method: it asks for a correction, and leaves open which.
    """

    gain: float = 0.2
    """How fast an exponent follows (above 0, at most 1)."""
    tolerance: float = 0.02
    """Distances from the middle (logarithms, >= 0) that move nothing."""
    limit: float = 2.0
    """The largest exponent (above 0, at most 4)."""
    samples: int = 48
    """Answers of each kind that make a round (>= 1)."""


class SpotRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How instances that may be preempted are used; without it they are used like any other."""

    factor: float = 1.25
    """Score of a spot instance is multiplied with this (above 0): above 1 it has to be better to be chosen."""
    refuse: bool = False
    """True: requests never go there."""
