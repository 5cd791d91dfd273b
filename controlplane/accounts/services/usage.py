"""What tenants used, added up by the hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from controlplane.accounts.models import TenantUsage


@dataclass(frozen=True, slots=True)
class UsageKey:
    """Whose use of what, in which hour."""

    tenant: str
    workload: str
    hour: datetime


@dataclass(slots=True)
class Usage:
    """Counts to add."""

    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


@transaction.atomic
def add_usage(counts: Mapping[UsageKey, Usage]) -> None:
    """Add counts to the rows of their hours."""
    for key, usage in sorted(counts.items(), key=lambda item: (item[0].tenant, item[0].workload, item[0].hour)):
        row, _ = TenantUsage.objects.get_or_create(tenant=key.tenant, workload=key.workload, hour=key.hour)
        TenantUsage.objects.filter(pk=row.pk).update(
            requests=F("requests") + usage.requests,
            refused=F("refused") + usage.refused,
            prompt_tokens=F("prompt_tokens") + usage.prompt_tokens,
            output_tokens=F("output_tokens") + usage.output_tokens,
        )
