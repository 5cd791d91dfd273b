"""What an engine says about its own load, and how it is reconciled with our bookings."""

import msgspec


class EngineReport(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of an engine's metrics; None where the engine did not say.

    ``queued_prefill_tokens`` is only set by engines that report exact uncached waiting tokens.
    """

    running: int | None = None
    waiting: int | None = None
    kv_use: float | None = None
    queued_prefill_tokens: int | None = None
    kv_block_tokens: int | None = None
    kv_capacity_tokens: int | None = None


class Reconciled(msgspec.Struct, frozen=True):
    """The last report, when it came, and what it shows beyond our own bookings."""

    report: EngineReport
    received_s: float
    external_requests: int
    external_prefill_tokens: int


def reconcile(report: EngineReport, received_s: float, own_requests: int, own_queued_prefill_tokens: int) -> Reconciled:
    """Split a report into our own part and the rest.

    ``max(own, reported)`` holds at the moment of the report; between reports the rest (what other clients put on the
    instance) is kept and our own part moves with our own bookings, so a stale report is never read as idle and never
    holds on to requests of ours that have ended. ``own_requests`` is the largest number booked while the report was
    under way.
    """
    reported = (report.running or 0) + (report.waiting or 0)
    reported_prefill = report.queued_prefill_tokens or 0
    return Reconciled(
        report,
        received_s,
        max(0, reported - own_requests),
        max(0, reported_prefill - own_queued_prefill_tokens),
    )
