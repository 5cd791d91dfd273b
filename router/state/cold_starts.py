"""How warm the cold instances of a fleet are: their prefix blocks, as a share of what the warm ones hold."""

from collections.abc import Iterable

from router.core.hotspot.prefix_class import taking_requests
from router.core.prefix import PrefixIndex
from router.core.terms import MOST_COLD_START_S
from router.state.instance import Instance

WARM = 1.0


def refresh_warmth(instances: Iterable[Instance], index: PrefixIndex, now_s: float) -> list[Instance]:
    """Measure every cold instance and end its cold start when it holds as much as a warm one; return those.

    Without a warm instance that holds anything there is nothing to be behind.
    """
    cold: list[Instance] = []
    warm_blocks: list[int] = []
    for instance in instances:
        if instance.cold_since_s is not None:
            cold.append(instance)
        elif taking_requests(instance.view):
            warm_blocks.append(index.resident(instance.slot))
    mean = sum(warm_blocks) / len(warm_blocks) if warm_blocks else 0.0
    for instance in cold:
        share = min(WARM, index.resident(instance.slot) / mean) if mean else 0.0
        over = instance.cold_since_s is not None and now_s - instance.cold_since_s > MOST_COLD_START_S
        instance.warm_up(WARM if over else share)
    return cold
