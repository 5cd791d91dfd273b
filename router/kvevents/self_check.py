"""Whether what was predicted is what engines report: cached tokens of every answer, predicted against reported.

A prediction can be wrong for good reasons (evictions on the way, blocks still being computed), so single differences
mean nothing. Differences that persist mean that the router and an engine do not hash the same tokens, and that the
residency of that instance must not be believed until they agree again.
"""

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum

DEFAULT_WINDOW = 64
MIN_SAMPLES = 16
"""Answers before anything is concluded."""
BAD_SHARE = 0.5
"""Share of wrong predictions from which an instance is not believed."""
GOOD_SHARE = 0.2
"""Share of wrong predictions down to which it is believed again."""


class Trust(Enum):
    """Whether predictions for an instance and model are to be believed."""

    UNKNOWN = "unknown"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The last answers of one instance and model; errors in blocks, positive where too much was predicted."""

    instance: str
    model: str
    trust: Trust
    samples: int
    wrong_share: float
    median_error_blocks: float
    p95_error_blocks: float
    """Of the size of the error, whichever its sign."""


class SelfCheck:
    """Compares predictions with reports for any number of (instance, model) pairs.

    A prediction is wrong when it differs by more than ``tolerance_blocks``. Answers whose prompt fills no block are
    left out: both sides say 0 whatever they believe.
    """

    def __init__(self, *, window: int = DEFAULT_WINDOW, tolerance_blocks: int = 1) -> None:
        if window < MIN_SAMPLES:
            raise ValueError(f"a window of {window} answers is shorter than {MIN_SAMPLES}")
        self._window = window
        self._tolerance_blocks = tolerance_blocks
        self._errors: dict[str, dict[str, deque[float]]] = {}
        self._trust: dict[tuple[str, str], Trust] = {}

    def record(self, instance: str, model: str, *, predicted: int, reported: int, prompt: int, block: int) -> Trust:
        """Take in one answer (all counts in tokens, ``block`` is a block's) and return what is believed now."""
        key = (instance, model)
        if prompt > block:
            errors = self._errors.setdefault(instance, {}).setdefault(model, deque(maxlen=self._window))
            errors.append((predicted - reported) / block)
            self._trust[key] = self._judge(errors, self._trust.get(key, Trust.UNKNOWN))
        return self._trust.get(key, Trust.UNKNOWN)

    def trust(self, instance: str, model: str) -> Trust:
        """Return what is believed of an instance and model."""
        return self._trust.get((instance, model), Trust.UNKNOWN)

    def forget(self, instance: str) -> None:
        """Drop what was learnt about an instance: it was removed, or began a new life."""
        for model in self._errors.pop(instance, {}):
            self._trust.pop((instance, model), None)

    def reports_of(self, instance: str) -> list[CheckReport]:
        """Return the reports about one instance."""
        models = self._errors.get(instance, {})
        return [self._report(instance, model, errors) for model, errors in sorted(models.items())]

    def reports(self) -> list[CheckReport]:
        """Return every pair's report, for metrics and alerts."""
        return [report for instance in sorted(self._errors) for report in self.reports_of(instance)]

    def _judge(self, errors: "deque[float]", before: Trust) -> Trust:
        if len(errors) < MIN_SAMPLES:
            return before
        wrong = self._wrong_share(errors)
        if wrong >= BAD_SHARE:
            return Trust.BAD
        if wrong <= GOOD_SHARE or before is Trust.UNKNOWN:
            return Trust.GOOD
        return before

    def _wrong_share(self, errors: "deque[float]") -> float:
        return sum(abs(error) > self._tolerance_blocks for error in errors) / len(errors)

    def _report(self, instance: str, model: str, errors: "deque[float]") -> CheckReport:
        ordered, sizes = sorted(errors), sorted(map(abs, errors))
        return CheckReport(
            instance=instance,
            model=model,
            trust=self._trust[instance, model],
            samples=len(errors),
            wrong_share=self._wrong_share(errors),
            median_error_blocks=ordered[len(ordered) // 2],
            p95_error_blocks=sizes[math.ceil(0.95 * len(sizes)) - 1],
        )
