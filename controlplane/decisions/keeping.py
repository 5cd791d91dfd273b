"""Decisions that somebody looked at, as rows: so that a link to one stays valid. Of a request, the newest one."""

import msgspec
from django.db import transaction
from django.utils import timezone

from controlplane.decisions.models import KeptDecision
from controlplane.telemetry.decision_samples import supersedes
from router.snapshot import DecisionSample


def keep(sample: DecisionSample) -> DecisionSample:
    """Keep a decision, unless a newer one about its request is kept; return the one that is kept from now on."""
    held = kept(sample.request_id)
    return held if held is not None and not supersedes(sample, held) else _keep(sample)


def kept(request_id: str) -> DecisionSample | None:
    """Return the newest decision about a request that was kept, or None."""
    body = KeptDecision.objects.filter(pk=request_id).values_list("body", flat=True).first()
    return None if body is None else _decoded(body)


@transaction.atomic
def _keep(sample: DecisionSample) -> DecisionSample:
    """Write it, unless another process has just written a newer one."""
    body = msgspec.json.encode(sample)
    row, is_new = KeptDecision.objects.select_for_update().get_or_create(pk=sample.request_id, defaults={"body": body})
    held = _decoded(row.body)
    if is_new or not supersedes(sample, held):
        return held
    row.body, row.kept_at = body, timezone.now()
    row.save(update_fields=["body", "kept_at"])
    return sample


def _decoded(body: bytes | memoryview) -> DecisionSample:
    return msgspec.json.decode(bytes(body), type=DecisionSample)
