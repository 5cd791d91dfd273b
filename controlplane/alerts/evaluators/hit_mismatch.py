"""The cache hits that the router predicts and those that engines report do not agree: scores are then wrong."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from controlplane.alerts.finding import Finding, Severity
from controlplane.alerts.kind import Limits
from controlplane.alerts.window import InstanceSpan, Window

KIND = "hit_mismatch"


class HitMismatchLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a prediction is wrong."""

    difference: Annotated[float, Meta(gt=0, le=1)] = 0.25
    """Difference of the two hit ratios."""
    least_prompt_tokens: Annotated[int, Meta(ge=1)] = 20_000
    """Prompt tokens with a reported hit in a minute, below which nothing is judged."""
    wrong_share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Share of the newest answers whose hit, predicted from KV events, was wrong by more than a block."""
    least_answers: Annotated[int, Meta(ge=1)] = 16
    """Answers of an instance with KV events below which these are not judged."""


def hit_mismatch(window: Window, limits: HitMismatchLimits) -> Iterator[Finding]:
    """Find instances whose engines report other hits than were predicted: answer by answer where hits are known by KV
    events, else by the ratio of a minute."""
    for instance in window.instances().values():
        if finding := _events_disagree(instance, limits):
            yield finding
            continue
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


def _events_disagree(instance: InstanceSpan, limits: HitMismatchLimits) -> Finding | None:
    wrong = instance.check_wrong_share
    if wrong is None or instance.checked < limits.least_answers:
        return None
    if not instance.disbelieved and wrong < limits.wrong_share:
        return None
    estimated = "; routers estimate its cache meanwhile" if instance.disbelieved else ""
    return Finding(
        kind=KIND,
        severity=Severity.WARNING,
        labels={"instance": instance.name},
        summary=f"Hits predicted from the KV events of {instance.name} were wrong for {wrong:.0%} of its last "
        f"{instance.checked} answers{estimated}",
        values={
            "wrong_share": round(wrong, 4),
            "error_blocks_p95": instance.check_error_blocks,
            "answers": instance.checked,
        },
    )
