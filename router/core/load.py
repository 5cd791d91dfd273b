"""High load: when it is, and what it does to a policy."""

from collections.abc import Sequence

from msgspec.structs import replace

from router.core.instance import ROUTABLE_STATES, InstanceView
from router.core.policy import Policy
from router.core.terms import LoadAdaptive, LoweredExponent


def fleet_load(views: Sequence[InstanceView], max_batch: int) -> float:
    """Return the larger of mean BS / largest batch and mean KV use over the instances that take requests; 0 for none.

    :param max_batch: requests that an instance runs at once, where its hardware profile does not say.
    """
    taking = [view for view in views if view.state in ROUTABLE_STATES]
    if not taking:
        return 0.0
    batch = sum(view.bs / (max_batch if view.hardware is None else view.hardware.max_sequences) for view in taking)
    said = [view.kv_use for view in taking if view.kv_use is not None]
    return max(batch / len(taking), sum(said) / len(said) if said else 0.0)


def is_high(was_high: bool, load: float, rule: LoadAdaptive) -> bool:
    """Say whether load is high now: above the threshold, or still within the hysteresis below it."""
    return load > (rule.threshold - rule.hysteresis if was_high else rule.threshold)


def lowered(policy: Policy) -> Policy:
    """Return the policy as it is in force at high load; without the term it is the same."""
    rule = policy.load_adaptive
    if rule is None:
        return policy
    if rule.exponent is LoweredExponent.B:
        return replace(policy, b=policy.b * rule.factor)
    return replace(policy, c=(policy.b if policy.c is None else policy.c) * rule.factor)
