"""Cold starts: instances that joined or lost their cache, until they are warm."""

from router.core.instance import InstanceView
from router.core.terms import ColdStart


def is_cold(view: InstanceView, rule: ColdStart, now_s: float) -> bool:
    """Say whether an instance is in its cold start: not for longer than the rule says, nor once it is warm."""
    since_s = view.cold_since_s
    return since_s is not None and now_s - since_s < rule.duration_s and view.warmth < rule.warm_share
