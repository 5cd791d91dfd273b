"""Forgetting what is old: results are large, and a simulation can be run again."""

from controlplane.lab.lifecycle import ENDED
from controlplane.lab.limits import KEPT_SIMULATIONS
from controlplane.lab.models import Simulation


def forget_old() -> int:
    """Delete the oldest ended simulations beyond those that are kept; return how many."""
    ended = Simulation.objects.filter(state__in=ENDED).order_by("-created_at", "pk")
    doomed = list(ended.values_list("pk", flat=True)[KEPT_SIMULATIONS : KEPT_SIMULATIONS + 100])
    if doomed:
        Simulation.objects.filter(pk__in=doomed).delete()
    return len(doomed)
