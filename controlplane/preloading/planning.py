"""Which class should go to which instance. Pure.

An instance that is warming gets the most frequent classes that it lacks; while the whole fleet is, nobody does. A
class that is hot gets more holders, until they are as many as its share of the arrivals asks for; the least loaded come
first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from controlplane.alerts.window import NEWEST_S, ClassSpan, InstanceSpan, Window
from controlplane.preloading.models import Reason
from router.core.hotspot.stage_one import is_hot
from router.core.instance import InstanceState

MOST_CLASSES = 5
"""Most frequent classes that are looked at."""
MOST_AT_AN_INSTANCE = 5
"""Preloads of one instance and epoch: its budget."""
WIDEN_BY = 2
"""New holders of a hot class in one plan."""


@dataclass(frozen=True, slots=True)
class Target:
    """An instance as it is registered."""

    id: str
    name: str
    state: InstanceState
    epoch: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A class that should go to an instance."""

    class_id: str
    target: Target
    reason: Reason


Made = tuple[str, str, int]
"""Class, instance and epoch of a preload that was planned before, whatever became of it."""


def plan(window: Window, targets: Iterable[Target], made: frozenset[Made]) -> list[Wish]:
    """Return what should be preloaded and was not yet."""
    known = {target.id: target for target in targets}
    present = window.instances(NEWEST_S)
    spent = _spent(made)
    wishes: list[Wish] = []
    for span in [span for span in window.classes() if span.text_bytes][:MOST_CLASSES]:
        for wish in (*_for_joined(span, known), *_for_hot(span, known, present)):
            budget_key = (wish.target.id, wish.target.epoch)
            if (span.id, *budget_key) in made or spent.get(budget_key, 0) >= MOST_AT_AN_INSTANCE:
                continue
            if any(other.class_id == span.id and other.target == wish.target for other in wishes):
                continue
            spent[budget_key] = spent.get(budget_key, 0) + 1
            wishes.append(wish)
    return wishes


def _for_joined(span: ClassSpan, targets: Mapping[str, Target]) -> Iterator[Wish]:
    if all(target.state is not InstanceState.READY for target in targets.values()):
        return
    for target in targets.values():
        if target.state is InstanceState.WARMING and target.id not in span.holders:
            yield Wish(span.id, target, Reason.JOINED)


def _for_hot(span: ClassSpan, targets: Mapping[str, Target], present: Mapping[str, InstanceSpan]) -> Sequence[Wish]:
    racing = {identity: row for identity, row in present.items() if row.takes_requests and identity in targets}
    holders = racing.keys() & span.holders
    if not is_hot(span.requests, span.arrivals, len(holders), len(racing)):
        return []
    missing = ceil(span.requests * len(racing) / span.arrivals) - len(holders)
    others = sorted(racing.keys() - holders, key=lambda identity: (racing[identity].bs_mean, identity))
    chosen = others[: min(missing, WIDEN_BY)]
    return [Wish(span.id, targets[identity], Reason.WIDEN) for identity in chosen]


def _spent(made: Iterable[Made]) -> dict[tuple[str, int], int]:
    spent: dict[tuple[str, int], int] = {}
    for _, instance_id, epoch in made:
        spent[instance_id, epoch] = spent.get((instance_id, epoch), 0) + 1
    return spent
