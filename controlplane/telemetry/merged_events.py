"""How several workers know what one instance's KV cache holds, put together: the weakest of them speaks for all."""

from collections.abc import Iterable, Sequence

from router.snapshot import EventsSample, Residency


def merge_events(samples: Sequence[EventsSample]) -> EventsSample:
    """Return one sample for all: the residency that every worker has, the worst of its figures, the sum of its counts.

    :param samples: one for each worker; at least one.
    """
    estimated = [sample for sample in samples if sample.residency is Residency.ESTIMATED]
    followed = [sample for sample in samples if sample.connected is not None]
    return EventsSample(
        residency=Residency.ESTIMATED if estimated else Residency.EVENTS,
        reason=next((sample.reason for sample in estimated if sample.reason), ""),
        connected=all(sample.connected for sample in followed) if followed else None,
        lag_s=max((sample.lag_s for sample in followed if sample.lag_s is not None), default=None),
        blocks=min((sample.blocks for sample in followed if sample.blocks is not None), default=None),
        gaps=sum(sample.gaps for sample in samples),
        restarts=max(sample.restarts for sample in samples),
        losses=sum(sample.losses for sample in samples),
        unreadable=sum(sample.unreadable for sample in samples),
        last_loss=next((sample.last_loss for sample in followed if sample.last_loss), ""),
        learnt=sum(sample.learnt for sample in samples),
        lessons_dropped=sum(sample.lessons_dropped for sample in samples),
        checked=sum(sample.checked for sample in samples),
        check_error_blocks=_worst(sample.check_error_blocks for sample in samples),
        check_wrong_share=_worst(sample.check_wrong_share for sample in samples),
        disbelieved=any(sample.disbelieved for sample in samples),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
