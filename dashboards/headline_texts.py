"""The numbers of the live page's headline as texts: the first paint has them. ``js/live/strip.js`` says the same."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from controlplane.telemetry.frame import Headline, Spread, WorkloadRow
from dashboards.live_texts import REFUSALS, STATS, Stat
from dashboards.templatetags.numbers import NONE, compact, integer, percent, rate, ratio, three_digits

_MOST_MS = 10.0
"""From how many seconds on durations are told in seconds."""


class StatText(NamedTuple):
    """One number of the headline with its words; ``unit`` is blank where the number has none."""

    stat: Stat
    number: str
    unit: str = ""


def stat_texts(headline: Headline) -> list[StatText]:
    """Return the headline's numbers in the order of the page."""
    return [StatText(stat, *_READERS[stat.key](headline)) for stat in STATS]


class DoorText(NamedTuple):
    """Who waits and who was refused, as ``js/live/door.js`` says it; ``is_limited`` says whether there is a limit."""

    number: str
    reasons: str
    is_limited: bool


def door_text(workloads: Iterable[WorkloadRow], has_full_instances: bool) -> DoorText:
    """Return what stands at the door of some workloads.

    :param has_full_instances: whether instances count as full from some number of requests on.
    """
    rows = list(workloads)
    refused = sum((Counter(row.refused) for row in rows), Counter[str]())
    waiting = sum(row.queued for row in rows)
    texts = [f"{integer(count)} {REFUSALS.get(reason, reason)}" for reason, count in sorted(refused.items()) if count]
    is_limited = has_full_instances or any(row.inside is not None or row.queued or row.refused for row in rows)
    number = f"{integer(waiting)} / {integer(refused.total())}"
    return DoorText(number, " · ".join(texts) or "none refused", is_limited)


def _pair(spread: Spread) -> tuple[str, str]:
    """Return median and 99th percentile in the unit of the larger one."""
    values = (spread.p50, spread.p99)
    known = [value for value in values if value is not None]
    if not known:
        return NONE, ""
    in_ms = max(known) < _MOST_MS

    def text(value: float | None) -> str:
        if value is None:
            return NONE
        return three_digits(value * 1000) if in_ms else f"{value:.1f}"

    return " / ".join(map(text, values)), "ms" if in_ms else "s"


def _per_second(value: float | None) -> str:
    return integer(value) if value is not None and value >= 100 else rate(value)


_READERS: dict[str, Callable[[Headline], tuple[str, ...]]] = {
    "rate": lambda headline: (_per_second(headline.requests_per_s),),
    "ttft": lambda headline: _pair(headline.ttft_s),
    "tpot": lambda headline: _pair(headline.tpot_s),
    "hit": lambda headline: (percent(headline.hit_ratio),),
    "load": lambda headline: (ratio(headline.load_max_over_mean),),
    "score": lambda headline: (compact(headline.score.p95),),
}
