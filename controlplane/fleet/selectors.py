"""What reads rows of the fleet app."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from controlplane.errors import NotFound
from controlplane.fleet.models import Instance
from router.core.instance import ROUTABLE_STATES, InstanceState


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


@dataclass(frozen=True, slots=True)
class ModelsInRotation:
    """How many instances that take requests serve a model."""

    by_name: Mapping[str, int]
    any_name: int
    """Instances that answer to any name, because they list none."""

    def serving(self, model: str) -> int:
        """Return how many serve a model."""
        return self.by_name.get(model, 0) + self.any_name


def models_in_rotation() -> ModelsInRotation:
    """Count the models of the instances that take requests."""
    lists = living().filter(state__in=ROUTABLE_STATES).order_by().values_list("served_models", flat=True)
    by_name: Counter[str] = Counter()
    any_name = 0
    for names in lists:
        by_name.update(names)
        any_name += not names
    return ModelsInRotation(by_name, any_name)


def count_by_state() -> Mapping[InstanceState, int]:
    """Return how many instances are in each state, those with none included."""
    counts = dict(living().order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in InstanceState if state is not InstanceState.REMOVED}
