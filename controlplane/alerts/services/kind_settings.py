"""Changing the limits of a kind of alert, or not looking for it at all."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.alerts.changes import alerts_changed
from controlplane.alerts.kinds import kind_named
from controlplane.alerts.models import KindSettings


@transaction.atomic
def set_kind(*, actor: Actor, name: str, enabled: bool, limits: Mapping[str, Any]) -> KindSettings:
    """Set whether a kind is looked for, and which of its limits differ from the defaults.

    :raises NotFound: when there is no such kind.
    :raises Invalid: for a limit that does not exist or cannot be.
    """
    kind_named(name).limits_with(limits)
    row, _ = KindSettings.objects.select_for_update().get_or_create(pk=name)
    before = {"enabled": row.enabled, "limits": row.limits}
    row.enabled, row.limits, row.updated_by = enabled, dict(limits), actor.label
    row.save()
    after = {"enabled": row.enabled, "limits": row.limits}
    record(actor=actor, action="alert_kind.change", target=("alert_kind", name, name), before=before, after=after)
    alerts_changed()
    return row
