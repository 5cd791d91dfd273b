"""Learning the balance between kinds of hardware from the first-token times that are observed.

A slow, bounded integral per kind: after every round of answers, the exponent of a kind that answers later than the
middle of the kinds grows, and that of one that answers sooner shrinks; the smallest is always 0, since only their
differences choose. Rounds are counted in answers, so the
learner has no clock: equal observations in equal order give equal exponents.
"""

from math import exp, log

import msgspec

from router.core.balance import Balance
from router.core.policy import Policy
from router.core.terms import EqualizeTtft

PATIENCE = 32
"""A round ends at the latest after this many times the samples that all kinds should have had together."""
FORGET = 0.25
"""Share of its exponent that a kind loses in a round with too few answers from it, so that it is tried again."""
REFERENCE_WEIGHT = 0.2
"""Weight of the newest round in the reference."""


class _Round(msgspec.Struct):
    """Answers of one kind since the last update."""

    count: int = 0
    total_s: float = 0.0


class TtftEqualizer:
    """The exponents of one policy, by kind of hardware."""

    def __init__(self, rule: EqualizeTtft) -> None:
        self.rule = rule
        self.balance: Balance | None = None
        """What decisions read; None until the first round is over."""
        self._round: dict[str, _Round] = {}
        self._answers = 0
        self._exponents: dict[str, float] = {}

    def observe(self, kind: str, ttft_s: float) -> None:
        """Take in the time to first token of one answer, in seconds; times of 0 or less say nothing."""
        if ttft_s <= 0:
            return
        answers = self._round.setdefault(kind, _Round())
        answers.count += 1
        answers.total_s += ttft_s
        self._answers += 1
        samples = self.rule.samples
        late = self._answers >= PATIENCE * samples * len(self._round)
        if late or all(kind.count >= samples for kind in self._round.values()):
            self._end_round()

    def _end_round(self) -> None:
        """Move every exponent once; kinds that did not answer at all are forgotten until they do."""
        rule = self.rule
        heard = {kind: log(r.total_s / r.count) for kind, r in self._round.items() if r.count >= rule.samples}
        middle = sum(heard.values()) / len(heard)
        moved = {kind: self._moved(kind, heard.get(kind, middle) - middle) for kind in self._round}
        least = min(moved.values())
        self._exponents = {kind: min(rule.limit, value - least) for kind, value in moved.items()}
        before = log(self.balance.reference_s) if self.balance is not None else middle
        reference_s = exp(before + (middle - before) * REFERENCE_WEIGHT)
        self.balance = Balance(reference_s, self._exponents)
        self._round = {kind: _Round() for kind, answers in self._round.items() if answers.count}
        self._answers = 0

    def _moved(self, kind: str, error: float) -> float:
        known = self._exponents.get(kind, 0.0)
        if self._round[kind].count < self.rule.samples:
            return known * (1 - FORGET)
        return known if abs(error) <= self.rule.tolerance else known + self.rule.gain * error


class Equalizers:
    """One learner for each policy, by name, that asks for it; a new revision goes on from what was learnt."""

    def __init__(self) -> None:
        self._by_policy: dict[str, TtftEqualizer] = {}

    def of(self, policy: Policy) -> TtftEqualizer | None:
        """Return the learner of a policy; None without the term."""
        rule = policy.equalize_ttft
        if rule is None:
            return None
        learner = self._by_policy.get(policy.name)
        if learner is None:
            learner = self._by_policy[policy.name] = TtftEqualizer(rule)
        learner.rule = rule
        return learner

    def keep_only(self, names: frozenset[str]) -> None:
        """Drop what belongs to policies that are gone."""
        self._by_policy = {name: learner for name, learner in self._by_policy.items() if name in names}
