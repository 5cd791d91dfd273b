"""Decisions that somebody looked at, as rows: so that a link to one stays valid."""

import msgspec
from msgspec.structs import replace

from controlplane.decisions.models import KeptDecision
from router.snapshot import DecisionSample


def keep(sample: DecisionSample) -> DecisionSample:
    """Keep a decision and return it; one that is told again, perhaps by another clock, stays as it was told first."""
    held = kept(sample.request_id)
    if held is not None and replace(sample, time_unix_s=held.time_unix_s) == held:
        return held
    KeptDecision.objects.update_or_create(request_id=sample.request_id, defaults={"body": msgspec.json.encode(sample)})
    return sample


def kept(request_id: str) -> DecisionSample | None:
    """Return a decision that was kept, or None."""
    body = KeptDecision.objects.filter(pk=request_id).values_list("body", flat=True).first()
    return None if body is None else msgspec.json.decode(bytes(body), type=DecisionSample)
