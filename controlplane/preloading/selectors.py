"""What reads rows of the preloading app."""

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from controlplane.preloading.lifecycle import PreloadState
from controlplane.preloading.models import Preload, Reason, TenantOptOut
from controlplane.preloading.planning import Made

HOT_AGAIN_AFTER = timedelta(minutes=10)


def preloads() -> QuerySet[Preload]:
    """Return all preloads, newest first."""
    return Preload.objects.all()


def preloads_of(instance_name: str, epoch: int) -> QuerySet[Preload]:
    """Return what an instance was to be sent since its cache was empty, newest first."""
    return preloads().filter(instance_name=instance_name, epoch=epoch)


def made() -> list[Made]:
    """Return what was planned in the last day, whatever became of it; for hot classes in the last minutes alone.

    What a hot class was brought may have been evicted when it is hot again.
    """
    lately = Q(created_at__gte=timezone.now() - HOT_AGAIN_AFTER) | Q(state=PreloadState.PLANNED)
    rows = Preload.objects.filter(~Q(reason=Reason.WIDEN) | lately).order_by()
    columns = rows.values_list("class_id", "instance_id", "epoch", "reason", "tokens")
    return [Made(class_id, str(one), epoch, Reason(reason), tokens) for class_id, one, epoch, reason, tokens in columns]


def count_by_state() -> Mapping[PreloadState, int]:
    """Return how many preloads of the last day are in each state, those with none included."""
    counts = dict(Preload.objects.order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in PreloadState}


def opted_out() -> frozenset[str]:
    """Return the names of the tenants whose prompts are never kept."""
    return frozenset(TenantOptOut.objects.values_list("tenant__name", flat=True))
