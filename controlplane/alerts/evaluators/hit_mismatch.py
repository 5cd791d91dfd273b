"""The cache hits that the router predicts and those that engines report do not agree: scores are then wrong."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import Window

KIND = "hit_mismatch"


class HitMismatchLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a prediction is wrong."""

    difference: Annotated[float, Meta(gt=0, le=1)] = 0.25
    """Difference of the two hit ratios."""
    least_prompt_tokens: Annotated[int, Meta(ge=1)] = 20_000
    """Prompt tokens with a reported hit in a minute, below which nothing is judged."""


def hit_mismatch(window: Window, limits: HitMismatchLimits) -> Iterator[Finding]:
    """Find instances whose engines report another hit ratio than was predicted."""
    for instance in window.instances().values():
        if instance.reported_prompt_tokens < limits.least_prompt_tokens or not instance.prompt_tokens:
            continue
        predicted = instance.predicted_hit_tokens / instance.prompt_tokens
        actual = instance.reported_hit_tokens / instance.reported_prompt_tokens
        if abs(predicted - actual) < limits.difference:
            continue
        yield Finding(
            kind=KIND,
            severity=Severity.WARNING,
            labels={"instance": instance.name},
            summary=f"Routers predicted a hit ratio of {predicted:.0%} at {instance.name}, "
            f"its engine reports {actual:.0%}",
            values={
                "predicted_hit_ratio": round(predicted, 4),
                "reported_hit_ratio": round(actual, 4),
                "reported_prompt_tokens": instance.reported_prompt_tokens,
            },
        )
