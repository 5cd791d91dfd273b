"""What tenants used, added up by the hour."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import F

from controlplane.accounts.models import TenantUsage

COUNTED = ("requests", "refused", "prompt_tokens", "output_tokens")
"""What the counts of a key are, in order."""


class UsageKey(NamedTuple):
    """Whose use of what, in which hour."""

    tenant: str
    workload: str
    hour: datetime


@transaction.atomic
def add_usage(counts: Mapping[UsageKey, tuple[int, ...]]) -> None:
    """Add counts to the rows of their hours."""
    for key in sorted(counts):
        row, _ = TenantUsage.objects.get_or_create(**key._asdict())
        added = {name: F(name) + count for name, count in zip(COUNTED, counts[key], strict=True)}
        TenantUsage.objects.filter(pk=row.pk).update(**added)
