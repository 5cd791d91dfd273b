"""What a shadow policy would have done to a workload over some hours, from the rows of those hours."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet, Sum

from controlplane.policies.models import ShadowHour, ShadowMoveHour
from controlplane.policies.selectors import workload_named
from controlplane.policies.services.shadows import COUNTED

WINDOWS_H = (1, 6, 24, 168)
"""Hours that one may look back, the one that runs included."""


@dataclass(frozen=True, slots=True)
class Move:
    """Decisions that went to one instance and would have gone to another."""

    live: str
    shadow: str
    decisions: int


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """One pair of policies. Of hits and products, only decisions in which both chose an instance."""

    live_policy: str
    shadow_policy: str
    decisions: int
    differs: int
    prompt_tokens: int
    live_hit_tokens: int
    shadow_hit_tokens: int
    live_product: int
    shadow_product: int
    moves: tuple[Move, ...]
    """Most frequent first."""

    @property
    def differs_share(self) -> float | None:
        """Decisions that differ, as a share of all."""
        return self.differs / self.decisions if self.decisions else None

    @property
    def live_hit_ratio(self) -> float | None:
        """Expected hits of what was chosen, as a share of the prompts."""
        return self.live_hit_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def shadow_hit_ratio(self) -> float | None:
        """Expected hits of what the shadow would have chosen, at that moment."""
        return self.shadow_hit_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def live_product_mean(self) -> float | None:
        """Mean P-token x BS of what was chosen, over all decisions."""
        return self.live_product / self.decisions if self.decisions else None

    @property
    def shadow_product_mean(self) -> float | None:
        """Mean P-token x BS of what the shadow would have chosen, over all decisions."""
        return self.shadow_product / self.decisions if self.decisions else None

    @property
    def arrivals(self) -> tuple[tuple[str, int], ...]:
        """By instance, how many decisions more (or fewer) the shadow would have sent there; largest gain first."""
        gains: Counter[str] = Counter()
        for move in self.moves:
            gains[move.shadow] += move.decisions
            gains[move.live] -= move.decisions
        return tuple(sorted(gains.items(), key=lambda pair: (-pair[1], pair[0])))


def shadow_reports(workload: str, hours: int, now: datetime) -> list[ShadowReport]:
    """Return a report for every pair of policies that stood beside each other, newest pair first.

    :raises NotFound: when there is no such workload.
    """
    name = workload_named(workload).name
    since = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours - 1)
    rows = ShadowHour.objects.filter(workload=name, hour__gte=since)
    moves = ShadowMoveHour.objects.filter(workload=name, hour__gte=since)
    pairs = rows.order_by("-hour", "-pk").values_list("live_policy", "shadow_policy")
    return [_report(rows, moves, live, shadow) for live, shadow in dict.fromkeys(pairs)]


def _report(rows: QuerySet[ShadowHour], moves: QuerySet[ShadowMoveHour], live: str, shadow: str) -> ShadowReport:
    totals = rows.filter(live_policy=live, shadow_policy=shadow).aggregate(**{name: Sum(name) for name in COUNTED})
    counted = (
        moves.filter(live_policy=live, shadow_policy=shadow)
        .order_by()
        .values_list("live", "shadow")
        .annotate(total=Sum("decisions"))
        .order_by("-total", "live", "shadow")
    )
    return ShadowReport(live, shadow, **totals, moves=tuple(Move(*line) for line in counted))
