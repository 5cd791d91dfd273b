"""Which class should go to which instance. Pure.

An instance that is warming gets the most frequent classes that it lacks, within its budget; while the whole fleet is,
nobody does. A class that is hot goes to everybody who lacks it, the least loaded first
(:mod:`router.core.hotspot.widening`): its own requests would carry it there, one long prefill each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.alerts.evaluators.hotspot_class import HotspotClassLimits
from controlplane.alerts.window import NEWEST_S, ClassSpan, InstanceSpan, Window
from controlplane.preloading.models import Reason
from router.core.hotspot.stage_one import is_hot
from router.core.hotspot.widening import to_widen
from router.core.instance import InstanceState
from router.core.preload_budget import PreloadBudget

BYTES_PER_TOKEN = 4
"""About, to judge a text's length by."""
_LEAST_REQUESTS = HotspotClassLimits().least_requests


@dataclass(frozen=True, slots=True)
class Target:
    """An instance as it is registered."""

    id: str
    name: str
    state: InstanceState
    epoch: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A class that should go to an instance; ``tokens`` is about how long its text is."""

    class_id: str
    target: Target
    reason: Reason
    tokens: int = 0


class Made(NamedTuple):
    """A preload that was planned before, whatever became of it."""

    class_id: str
    instance_id: str
    epoch: int
    reason: Reason
    tokens: int


@dataclass(slots=True)
class _Spent:
    """What one instance was sent since it joined."""

    prefixes: int = 0
    tokens: int = 0


def plan(window: Window, targets: Iterable[Target], made: Iterable[Made], budget: PreloadBudget) -> list[Wish]:
    """Return what should be preloaded and was not yet."""
    known = {target.id: target for target in targets}
    present = window.instances(NEWEST_S)
    before = list(made)
    taken = {(one.class_id, one.instance_id, one.epoch) for one in before}
    spent = _spent(before)
    wishes: list[Wish] = []
    for span in [span for span in window.classes() if span.text_bytes][: budget.most_prefixes]:
        for wish in (*_for_joined(span, known), *_for_hot(span, known, present)):
            key = (wish.class_id, wish.target.id, wish.target.epoch)
            if key not in taken and _is_within(wish, spent, budget):
                taken.add(key)
                wishes.append(wish)
    return wishes


def _for_joined(span: ClassSpan, targets: Mapping[str, Target]) -> Iterator[Wish]:
    if all(target.state is not InstanceState.READY for target in targets.values()):
        return
    for target in targets.values():
        if target.state is InstanceState.WARMING and target.id not in span.holders:
            yield _wish(span, target, Reason.JOINED)


def _for_hot(span: ClassSpan, targets: Mapping[str, Target], present: Mapping[str, InstanceSpan]) -> Sequence[Wish]:
    loads = {identity: row.bs_mean for identity, row in present.items() if row.takes_requests and identity in targets}
    holders = loads.keys() & span.holders
    if span.requests < _LEAST_REQUESTS or not is_hot(span.requests, span.arrivals, len(holders), len(loads)):
        return []
    return [_wish(span, targets[identity], Reason.WIDEN) for identity in to_widen(loads, holders)]


def _wish(span: ClassSpan, target: Target, reason: Reason) -> Wish:
    return Wish(span.id, target, reason, span.text_bytes // BYTES_PER_TOKEN)


def _is_within(wish: Wish, spent: dict[tuple[str, int], _Spent], budget: PreloadBudget) -> bool:
    """Say whether a wish is within its instance's budget, and charge it; hot classes are no matter of budget."""
    if wish.reason is not Reason.JOINED:
        return True
    so_far = spent.setdefault((wish.target.id, wish.target.epoch), _Spent())
    if so_far.prefixes >= budget.most_prefixes or so_far.tokens + wish.tokens > budget.tokens:
        return False
    so_far.prefixes += 1
    so_far.tokens += wish.tokens
    return True


def _spent(made: Iterable[Made]) -> dict[tuple[str, int], _Spent]:
    spent: dict[tuple[str, int], _Spent] = {}
    for one in made:
        if one.reason is Reason.JOINED:
            so_far = spent.setdefault((one.instance_id, one.epoch), _Spent())
            so_far.prefixes += 1
            so_far.tokens += one.tokens
    return spent
