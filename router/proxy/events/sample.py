"""What is told of an instance's events outside: put together for snapshots and metrics. Pure."""

import msgspec

from router.kvevents.feed import FeedStatus
from router.kvevents.self_check import CheckReport
from router.proxy.events.learning import LearningCounts
from router.snapshot import EventsSample, Residency


class Standing(msgspec.Struct, frozen=True):
    """How an instance's residency is known, and why it is only estimated where it is; ``reason`` is empty otherwise."""

    residency: Residency
    reason: str = ""


def sample_of(
    standing: Standing,
    status: FeedStatus | None,
    learning: LearningCounts,
    check: CheckReport | None,
    disbelieved: bool,
) -> EventsSample:
    """Return the sample of one instance; ``status`` is None where no events are followed."""
    sample = EventsSample(
        residency=standing.residency,
        reason=standing.reason,
        learnt=learning.learnt,
        lessons_dropped=learning.dropped + learning.failed,
        checked=0 if check is None else check.samples,
        check_error_blocks=None if check is None else check.p95_error_blocks,
        check_wrong_share=None if check is None else round(check.wrong_share, 4),
        disbelieved=disbelieved,
    )
    if status is None:
        return sample
    return msgspec.structs.replace(
        sample,
        connected=status.connected,
        lag_s=None if status.lag_s is None else round(status.lag_s, 4),
        blocks=status.blocks,
        gaps=status.gaps,
        restarts=status.restarts,
        losses=status.lost,
        unreadable=status.malformed + status.undecodable + status.refused_events,
        last_loss=status.last_loss,
    )
