"""A finding: one evaluator's evidence, in one evaluation, that something is wrong."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Evidence of one condition.

    ``labels`` say what it is about and make its identity: the same labels are the same condition. ``values`` are the
    numbers behind it, with their units in the names; they may change from one evaluation to the next.
    """

    kind: str
    severity: Severity
    labels: Mapping[str, str]
    summary: str
    values: Mapping[str, float | int | str | None] = field(default_factory=dict)

    @property
    def all_labels(self) -> dict[str, str]:
        """The labels that silences and routes match: those of the condition, its kind and its severity."""
        return {**self.labels, "kind": self.kind, "severity": self.severity.value}

    @property
    def fingerprint(self) -> str:
        """The identity of the condition: 32 hex digits that do not depend on the order of labels."""
        return fingerprint_of(self.kind, self.labels)


def fingerprint_of(kind: str, labels: Mapping[str, str]) -> str:
    """Return the identity of a condition."""
    text = json.dumps([kind, sorted(labels.items())], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
