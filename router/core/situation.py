"""What a decision may know beyond the fleet, the request and the policy: the time, hot classes, the hardware."""

from collections.abc import Mapping

import msgspec

from router.core.balance import Balance


class HotClass(msgspec.Struct, frozen=True):
    """A prefix class under mitigation: its short name, and the slots of the instances that are out for it."""

    name: str
    holders: frozenset[int]


class Hit(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one prompt that an instance holds, whole KV blocks; ``exact`` when all of them are its own word."""

    tokens: int
    exact: bool


class Situation(msgspec.Struct, frozen=True, gc=False):
    """The moment of a decision. ``now_s`` is on the clock of ``InstanceView.cold_since_s``."""

    now_s: float = 0.0
    hot: HotClass | None = None
    """The class of this very request, when it is mitigated."""
    balance: Balance | None = None
    """What the policy's learner knows about kinds of hardware."""
    hits: Mapping[int, Hit] | None = None
    """By slot, what instances that tell their KV events hold of this very prompt; of the others it is estimated."""


CALM = Situation()
