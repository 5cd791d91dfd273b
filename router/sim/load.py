"""How many requests each instance held over time, computed exactly from arrivals and ends."""

import numpy as np
from numpy.typing import NDArray

from router.sim.cost import PS_PER_S
from router.sim.outcomes import Outcomes, Status

Floats = NDArray[np.float64]


def load_over_time(outcomes: Outcomes, instances: int, bins: int, start_s: float, stop_s: float) -> Floats:
    """Return the mean number of requests at each instance in each of ``bins`` equal spans of time.

    :returns: an array of shape (instances, bins).
    """
    served = np.asarray(outcomes.status) != Status.REFUSED
    place = np.asarray(outcomes.instance)[served]
    arrival_s = np.asarray(outcomes.arrival_ps)[served] / PS_PER_S
    end_s = np.asarray(outcomes.end_ps)[served] / PS_PER_S
    edges = np.linspace(start_s, stop_s, bins + 1)
    held = np.zeros((instances, bins))
    for instance in range(instances):
        mine = place == instance
        held[instance] = np.diff(_held_until(edges, arrival_s[mine]) - _held_until(edges, end_s[mine]))
    return np.asarray(held / max((stop_s - start_s) / bins, 1e-12))


def imbalance(load: Floats) -> tuple[float, float]:
    """Return (max / mean, coefficient of variation) over instances, averaged over time with the load as weight."""
    mean = load.mean(axis=0).sum()
    if mean == 0:
        return 1.0, 0.0
    return float(load.max(axis=0).sum() / mean), float(load.std(axis=0).sum() / mean)


def _held_until(edges: Floats, moments: Floats) -> Floats:
    """Return, for each edge, the sum over the moments before it of the time since then."""
    ordered = np.sort(moments)
    before = np.searchsorted(ordered, edges)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    return np.asarray(before * edges - sums[before])
