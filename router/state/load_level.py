"""Whether load is high, for each policy that wants to know, with hysteresis."""

from collections.abc import Sequence

import msgspec

from router.core.instance import InstanceView
from router.core.load import fleet_load, is_high, lowered
from router.core.policy import Policy


class _Level(msgspec.Struct):
    policy: Policy
    lowered: Policy
    high: bool = False


class LoadLevels:
    """Remembers, by the name of a policy, whether load was high."""

    def __init__(self) -> None:
        self._levels: dict[str, _Level] = {}

    def in_force(self, policy: Policy, views: Sequence[InstanceView]) -> Policy:
        """Return the policy, or what high load makes of it."""
        rule = policy.load_adaptive
        if rule is None:
            return policy
        level = self._levels.get(policy.name)
        if level is None or level.policy is not policy:
            high = level is not None and level.high
            level = self._levels[policy.name] = _Level(policy, lowered(policy), high)
        level.high = is_high(level.high, fleet_load(views, rule.max_batch), rule)
        return level.lowered if level.high else policy

    def is_high(self, policy: Policy) -> bool:
        """Say whether load was high at the policy's last decision."""
        level = self._levels.get(policy.name)
        return level is not None and level.high

    def keep_only(self, names: frozenset[str]) -> None:
        """Drop what belongs to policies that are gone."""
        self._levels = {name: level for name, level in self._levels.items() if name in names}
