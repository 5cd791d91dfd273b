"""What changes rows of the preloading app."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.models import Tenant
from controlplane.accounts.services.audit import record
from controlplane.fleet.doorbell import ring_on_commit
from controlplane.preloading.lifecycle import PreloadEvent, PreloadState, next_state
from controlplane.preloading.models import Preload, TenantOptOut
from controlplane.preloading.planning import Wish
from controlplane.preloading.task_names import SEND
from controlplane.publication import configuration_changed
from router.core.preload_budget import PreloadBudget

LEASE = timedelta(seconds=60)
MOST_ATTEMPTS = 30
KEPT = timedelta(days=1)
AT_ONCE = PreloadBudget().at_once
"""Preloads under way in the whole fleet."""
_WAIT_S = 3.0


@transaction.atomic
def make_plans(*, wishes: Sequence[Wish]) -> int:
    """Plan what is wanted, and forget what is long over; return how many were planned."""
    now = timezone.now()
    Preload.objects.filter(created_at__lt=now - KEPT).exclude(state=PreloadState.PLANNED).delete()
    rows = [
        Preload(
            class_id=wish.class_id,
            instance_id=wish.target.id,
            instance_name=wish.target.name,
            epoch=wish.target.epoch,
            reason=wish.reason,
            tokens=wish.tokens,
            due_at=now,
        )
        for wish in wishes
    ]
    Preload.objects.bulk_create(rows, ignore_conflicts=True)
    if rows:
        ring_on_commit(SEND)
    return len(rows)


def claim(now: datetime | None = None) -> list[Preload]:
    """Return preloads that are due, each to one caller only, as many as may be under way at once."""
    now = now or timezone.now()
    planned = Preload.objects.filter(state=PreloadState.PLANNED)
    room = AT_ONCE - planned.filter(claimed_until__gt=now).count()
    free = Q(claim=None) | Q(claimed_until__lte=now)
    claimed = []
    for row in planned.filter(free, due_at__lte=now).order_by("due_at", "created_at")[: max(0, room)]:
        mine = uuid4()
        free_row = Preload.objects.filter(free, pk=row.pk, state=PreloadState.PLANNED, attempts=row.attempts)
        if free_row.update(claim=mine, claimed_until=now + LEASE, attempts=F("attempts") + 1):
            row.claim, row.attempts = mine, row.attempts + 1
            claimed.append(row)
    return claimed


@transaction.atomic
def settle(
    *,
    row: Preload,
    event: PreloadEvent,
    detail: str,
    prompt_tokens: int | None = None,
    cached_tokens: int | None = None,
) -> bool:
    """Note how an attempt went; a preload that was put off too often is given up. False when the claim was lost."""
    if event is PreloadEvent.PUT_OFF and row.attempts >= MOST_ATTEMPTS:
        event = PreloadEvent.GIVEN_UP
    now = timezone.now()
    after = next_state(row.life, event)
    planned = after is PreloadState.PLANNED
    mine = Preload.objects.filter(pk=row.pk, claim=row.claim, state=PreloadState.PLANNED)
    return bool(
        mine.update(
            state=after,
            detail=detail[:300],
            claim=None,
            claimed_until=None,
            due_at=now + timedelta(seconds=_WAIT_S),
            ended_at=None if planned else now,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
        )
    )


@transaction.atomic
def set_keep_prefixes(*, actor: Actor, tenant: Tenant, keep: bool) -> None:
    """Allow that the beginnings of a tenant's prompts are kept in routers' memory, or forbid it."""
    if keep:
        changed = bool(TenantOptOut.objects.filter(tenant=tenant).delete()[0])
    else:
        _, changed = TenantOptOut.objects.get_or_create(tenant=tenant)
    if changed:
        values = {"keep_prefixes": keep}
        record(actor=actor, action="tenant.preloading", target=("tenant", tenant.pk, tenant.name), after=values)
        configuration_changed()
