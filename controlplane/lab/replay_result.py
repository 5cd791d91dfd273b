"""What a preview by simulation says: one policy as it is live, and as it is edited, on the same requests. Pure."""

import msgspec

from router.sim.metrics import Distribution, RunSummary
from router.sim.report.comparison import Comparison


class InstanceShare(msgspec.Struct, frozen=True):
    """The requests of one instance under each, and their shares of all (0..1)."""

    instance: str
    before: int
    after: int
    before_share: float
    after_share: float


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulator predicts of one policy."""

    ttft_s: Distribution
    tpot_s: Distribution
    hit_ratio: float
    load_max_over_mean: float
    refused: int


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """Both runs side by side; the requests after the warm-up."""

    live: str
    requests: int
    moved: int
    """Requests that the edited policy sent elsewhere."""
    recorded: int
    """Requests of the recording, those of the warm-up among them."""
    provenance: str
    held_tokens: int
    """Tokens that caches began with: what recorded requests found there and no earlier one had left."""
    recorded_hit_ratio: float | None
    """What real engines had in their caches, of the requests after the warm-up; None where none of them said."""
    shares: tuple[InstanceShare, ...]
    before: Predicted
    after: Predicted


def replay_result(comparison: Comparison) -> ReplayResult:
    """Return the two runs of a preview.

    :raises ValueError: for a comparison that is none.
    """
    before, after = comparison.placements
    total = sum(before.requests.values()) + before.refused
    share = 1 / max(1, total)
    return ReplayResult(
        live=before.policy,
        requests=total,
        moved=after.moved,
        recorded=comparison.provenance.requests,
        provenance=comparison.provenance.trace_provenance,
        held_tokens=comparison.provenance.held_tokens,
        recorded_hit_ratio=comparison.provenance.recorded_hit_ratio,
        shares=tuple(
            InstanceShare(name, count, after.requests[name], count * share, after.requests[name] * share)
            for name, count in before.requests.items()
        ),
        before=_predicted(comparison.runs[0].summary, before.refused),
        after=_predicted(comparison.runs[1].summary, after.refused),
    )


def _predicted(summary: RunSummary, refused: int) -> Predicted:
    return Predicted(
        ttft_s=summary.ttft_s,
        tpot_s=summary.tpot_s,
        hit_ratio=summary.hit_ratio,
        load_max_over_mean=summary.load_max_over_mean,
        refused=refused,
    )
