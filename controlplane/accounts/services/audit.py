"""Writing the audit log: called by every service inside the transaction of the change itself."""

from collections.abc import Mapping
from typing import Any

from controlplane.accounts.actor import Actor
from controlplane.accounts.models import AuditEntry


def record(
    *,
    actor: Actor,
    action: str,
    target: tuple[str, object, str],
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    message: str = "",
) -> AuditEntry:
    """Note one change; ``target`` is the type, id and name of what was changed, values are plain JSON."""
    object_type, object_id, object_name = target
    return AuditEntry.objects.create(
        actor=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        action=action,
        object_type=object_type,
        object_id=str(object_id),
        object_name=object_name,
        before=before,
        after=after,
        message=message,
    )
