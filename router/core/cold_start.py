"""Cold starts: instances that joined or lost their cache, until they are warm."""

from collections.abc import Iterable

from router.core.instance import InstanceView
from router.core.terms import ColdStart


def is_cold(view: InstanceView, rule: ColdStart, now_s: float) -> bool:
    """Say whether an instance is in its cold start: not for longer than the rule says, nor once it is warm."""
    since_s = view.cold_since_s
    return since_s is not None and now_s - since_s < rule.duration_s and view.warmth < rule.warm_share


def warm_mean_bs(views: Iterable[InstanceView], rule: ColdStart, now_s: float) -> float | None:
    """Return the mean of the requests at the warm instances; None when there is none."""
    warm = [view.bs for view in views if not is_cold(view, rule, now_s)]
    return sum(warm) / len(warm) if warm else None
