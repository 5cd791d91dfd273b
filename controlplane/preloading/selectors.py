"""What reads rows of the preloading app."""

from collections.abc import Mapping

from django.db.models import Count, QuerySet

from controlplane.preloading.lifecycle import PreloadState
from controlplane.preloading.models import Preload, TenantOptOut
from controlplane.preloading.planning import Made


def preloads() -> QuerySet[Preload]:
    """Return all preloads, newest first."""
    return Preload.objects.all()


def made() -> frozenset[Made]:
    """Return what was planned in the last day, whatever became of it."""
    rows = Preload.objects.values_list("class_id", "instance_id", "epoch")
    return frozenset((class_id, str(instance_id), epoch) for class_id, instance_id, epoch in rows)


def count_by_state() -> Mapping[PreloadState, int]:
    """Return how many preloads of the last day are in each state, those with none included."""
    counts = dict(Preload.objects.order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in PreloadState}


def opted_out() -> frozenset[str]:
    """Return the names of the tenants whose prompts are never kept."""
    return frozenset(TenantOptOut.objects.values_list("tenant__name", flat=True))
