"""What a replay has seen so far, as columns and counts."""

from array import array
from collections import Counter
from dataclasses import dataclass, field

from router.replay.exchange import Exchange

MAX_VALUES = 1_000_000
"""Durations kept of each kind; then the older half goes, so that traffic without an end needs no memory without one."""

MAX_EXAMPLE = 300
"""Characters kept of an error's text."""


def _column() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class Tally:
    """Times in wall-clock seconds. ``late`` requests were sent after their time because too many were under way."""

    sent: int = 0
    done: int = 0
    in_flight: int = 0
    late: int = 0
    late_s: float = 0.0
    behind_s: float = 0.0
    """The most that the replayer itself was behind its schedule."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    ttft_s: "array[float]" = field(default_factory=_column)
    tpot_s: "array[float]" = field(default_factory=_column)
    e2e_s: "array[float]" = field(default_factory=_column)
    errors: "Counter[str]" = field(default_factory=Counter)
    error_examples: dict[str, str] = field(default_factory=dict)
    """What the first error of each kind said, where it said anything."""
    instances: "Counter[str]" = field(default_factory=Counter)
    policies: "Counter[str]" = field(default_factory=Counter)

    @property
    def failed(self) -> int:
        """Requests that ended in an error."""
        return self.errors.total()

    def record_error(self, kind: str, detail: str = "") -> None:
        """Count an answer that did not end well."""
        self.errors[kind] += 1
        if detail and detail != kind:
            self.error_examples.setdefault(kind, detail[:MAX_EXAMPLE])

    def record(self, exchange: Exchange, sent_s: float) -> None:
        """Count an answer that ended well."""
        self.done += 1
        tokens = exchange.completion_tokens or exchange.chunks
        self.prompt_tokens += exchange.prompt_tokens
        self.cached_tokens += exchange.cached_tokens
        self.completion_tokens += tokens
        if exchange.instance:
            self.instances[exchange.instance] += 1
        if exchange.policy:
            self.policies[exchange.policy] += 1
        if exchange.first_s is None or exchange.last_s is None:
            return
        _keep(self.ttft_s, exchange.first_s - sent_s)
        _keep(self.e2e_s, exchange.last_s - sent_s)
        if tokens > 1:
            _keep(self.tpot_s, (exchange.last_s - exchange.first_s) / (tokens - 1))


def _keep(column: "array[float]", value: float) -> None:
    if len(column) >= MAX_VALUES:
        del column[: MAX_VALUES // 2]
    column.append(value)
