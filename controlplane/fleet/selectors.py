"""What reads rows of the fleet app."""

from collections.abc import Mapping

from django.db.models import Count, QuerySet

from controlplane.errors import NotFound
from controlplane.fleet.models import Instance
from router.core.instance import InstanceState


def living() -> QuerySet[Instance]:
    """Return all instances that are not removed, by name."""
    return Instance.objects.exclude(state=InstanceState.REMOVED)


def instance_named(name: str) -> Instance:
    """Return the living instance of a name.

    :raises NotFound: when there is none.
    """
    found = living().filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no instance named {name}.")
    return found


def count_by_state() -> Mapping[InstanceState, int]:
    """Return how many instances are in each state, those with none included."""
    counts = dict(living().order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in InstanceState if state is not InstanceState.REMOVED}
