"""What the live page shows of the past: columns of a selection, courses of single instances, and minutes to compare."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from controlplane.telemetry import rollups
from controlplane.telemetry.frame import Spread
from controlplane.telemetry.framing import MICROSECOND, flat, spread
from controlplane.telemetry.past import Lens, Stretch, past_columns
from controlplane.telemetry.rollup import BUCKET_S, WorkerRollup
from controlplane.telemetry.selection import Selection

MINUTE_S = 60
_CACHED = 8
"""Questions whose answers are kept until there is a newer roll-up: browsers that show the same ask the same."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    minutes: int
    """The newest ones; how long the range is where ``from_s`` says when it begins."""
    from_s: int | None = None
    """Unix seconds: where the range begins, for one that does not end now."""
    selection: Selection
    instances: tuple[str, ...] = ()
    """Names of instances to set apart."""
    then_s: int | None = None
    """Unix seconds: a moment whose minute is compared with the newest one."""


class PastColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One span of the past."""

    start_s: int
    requests: int
    errors: int
    hit_ratio: float | None
    ttft_s: Spread
    tpot_s: Spread
    score: Spread
    score_counts: tuple[int, ...]
    load: float | None
    """Of a selection: largest mean BS over the mean of all. Of an instance: its mean BS over the mean of all."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The past of one instance, in the same columns."""

    instance: str
    columns: tuple[PastColumn, ...]


class ComparedMinute(msgspec.Struct, frozen=True, kw_only=True):
    """One minute of an instance or, where ``instance`` is empty, of what is selected."""

    instance: str
    start_s: int
    end_s: int
    is_then: bool
    requests_per_s: float
    errors: int
    hit_ratio: float | None
    ttft_s: Spread
    tpot_s: Spread
    score: Spread
    score_counts: tuple[int, ...]
    bs: float | None
    """Mean requests at the instance; of a selection: at an instance of it."""
    load: float | None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; columns oldest first."""

    start_s: int
    span_s: int
    """Width of a column."""
    columns: tuple[PastColumn, ...]
    courses: tuple[Course, ...]
    minutes: tuple[ComparedMinute, ...]
    """Empty where nothing is compared."""
    kept_from_s: int
    """What lies before this moment is kept no more, or never was."""


def read_history(question: Question, now_unix_s: float) -> History:
    """Answer from the roll-ups up to the newest bucket that is over."""
    return _answer(question, int(now_unix_s // BUCKET_S) * BUCKET_S, rollups.newest_row())


@lru_cache(maxsize=_CACHED)
def _answer(question: Question, end_s: int, _newest_row: int) -> History:
    first_s, last_s = _range(question, end_s)
    span_s = last_s - first_s
    read = rollups.read(first_s, min(last_s, end_s) - BUCKET_S)
    columns = past_columns(read, first_s, span_s, Lens(selection=question.selection))
    return History(
        start_s=first_s,
        span_s=columns[0].span_s,
        columns=tuple(_column(one, one.load_max_over_mean()) for one in columns),
        courses=tuple(_course(question, name, read, first_s, span_s) for name in question.instances),
        minutes=tuple(_minutes(question, min(last_s, end_s))),
        kept_from_s=max(end_s - rollups.KEPT_S, rollups.oldest_bucket() or end_s),
    )


def _range(question: Question, end_s: int) -> tuple[int, int]:
    """Return where the range begins and ends: whole buckets."""
    span_s = question.minutes * MINUTE_S
    if question.from_s is None:
        return end_s - min(span_s, rollups.KEPT_S), end_s
    first_s = question.from_s // BUCKET_S * BUCKET_S
    return first_s, first_s + span_s


def _forget(**_: object) -> None:
    _answer.cache_clear()


rollups.subscribe(_forget)


def _course(question: Question, name: str, read: Sequence[WorkerRollup], first_s: int, span_s: int) -> Course:
    columns = past_columns(read, first_s, span_s, Lens(selection=question.selection, instance=name))
    return Course(instance=name, columns=tuple(_column(one, one.load_over_mean(name)) for one in columns))


def _minutes(question: Question, end_s: int) -> list[ComparedMinute]:
    names = question.instances or ("",)
    ends = {end_s: False}
    if question.then_s is not None:
        ends[(question.then_s // BUCKET_S + 1) * BUCKET_S] = True
    if len(names) * len(ends) < 2:
        return []
    found = {end: rollups.read(end - MINUTE_S, end - BUCKET_S) for end in ends}
    return [
        _minute(name, question.selection, found[end], end, is_then)
        for name in names
        for end, is_then in sorted(ends.items())
    ]


def _minute(name: str, selection: Selection, read: Sequence[WorkerRollup], end_s: int, is_then: bool) -> ComparedMinute:
    stretch = Stretch(end_s - MINUTE_S, MINUTE_S)
    for rollup in read:
        stretch.add(rollup, Lens(selection=selection, instance=name))
    means, traffic = stretch.bs_means(), stretch.traffic
    return ComparedMinute(
        instance=name,
        start_s=stretch.start_s,
        end_s=end_s,
        is_then=is_then,
        requests_per_s=round(traffic.requests / MINUTE_S, 2),
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        ttft_s=spread(traffic.ttft_us, MICROSECOND),
        tpot_s=spread(traffic.tpot_us, MICROSECOND),
        score=spread(traffic.score),
        score_counts=flat(traffic.score),
        bs=_bs(means, name),
        load=stretch.load_over_mean(name) if name else stretch.load_max_over_mean(),
    )


def _bs(means: Mapping[str, float], name: str) -> float | None:
    found = means.get(name) if name else sum(means.values()) / len(means) if means else None
    return _rounded(found, 2)


def _column(stretch: Stretch, load: float | None) -> PastColumn:
    traffic = stretch.traffic
    return PastColumn(
        start_s=stretch.start_s,
        requests=traffic.requests,
        errors=traffic.errors,
        hit_ratio=_rounded(traffic.hit_ratio),
        ttft_s=spread(traffic.ttft_us, MICROSECOND),
        tpot_s=spread(traffic.tpot_us, MICROSECOND),
        score=spread(traffic.score),
        score_counts=flat(traffic.score),
        load=load,
    )


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
