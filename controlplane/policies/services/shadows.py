"""Where shadow policies would have gone elsewhere, added up by the hour."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import F

from controlplane.policies.models import ShadowHour, ShadowMoveHour

COUNTED = (
    "decisions",
    "differs",
    "prompt_tokens",
    "live_hit_tokens",
    "shadow_hit_tokens",
    "live_product",
    "shadow_product",
)
"""What the counts of a key are, in order."""


class ShadowKey(NamedTuple):
    """Which workload's live and shadow policies (``name@revision``), in which hour."""

    workload: str
    live_policy: str
    shadow_policy: str
    hour: datetime


class MoveKey(NamedTuple):
    """The same, and the instances (by name) that the two policies chose."""

    workload: str
    live_policy: str
    shadow_policy: str
    hour: datetime
    live: str
    shadow: str


@transaction.atomic
def add_shadow_counts(counts: Mapping[ShadowKey, tuple[int, ...]]) -> None:
    """Add counts to the rows of their hours."""
    for key in sorted(counts):
        row, _ = ShadowHour.objects.get_or_create(**key._asdict())
        added = {name: F(name) + count for name, count in zip(COUNTED, counts[key], strict=True)}
        ShadowHour.objects.filter(pk=row.pk).update(**added)


@transaction.atomic
def add_shadow_moves(counts: Mapping[MoveKey, tuple[int, ...]]) -> None:
    """Add numbers of decisions to the rows of their hours and pairs of instances."""
    keys = sorted(counts)
    ShadowMoveHour.objects.bulk_create([ShadowMoveHour(**key._asdict()) for key in keys], ignore_conflicts=True)
    for key in keys:
        ShadowMoveHour.objects.filter(**key._asdict()).update(decisions=F("decisions") + counts[key][0])
