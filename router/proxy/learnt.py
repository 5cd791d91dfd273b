"""What routing has learnt, by policy: the balance between kinds of hardware, and whether load is high."""

from router.core.policy import Policy
from router.proxy.plane import Plane
from router.snapshot import LearntSample


def learnt(plane: Plane) -> tuple[LearntSample, ...]:
    """Return what is learnt for each policy in force that learns anything, by name."""
    policies = {} if plane.table is None else {policy.name: policy for policy in plane.table.policies.values()}
    found = (_learnt(plane, policies[name]) for name in sorted(policies))
    return tuple(sample for sample in found if sample is not None)


def _learnt(plane: Plane, policy: Policy) -> LearntSample | None:
    if policy.equalize_ttft is None and policy.load_adaptive is None:
        return None
    balance = plane.fleet.balance_of(policy)
    return LearntSample(
        policy=policy.label,
        reference_s=None if balance is None else balance.reference_s,
        exponents={} if balance is None else dict(balance.exponents),
        high_load=None if policy.load_adaptive is None else plane.fleet.load_is_high(policy),
    )
