"""What a policy would have made of the decisions that routers explained lately: who moves, and who gets what share.

Each decision is made again from its own facts (:mod:`controlplane.telemetry.what_if`). Nothing feeds back: a request
that would have gone elsewhere does not change what the next one finds, so shares are a first answer, not a simulation.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from controlplane.telemetry.hub import hub
from controlplane.telemetry.what_if import decide_again, is_answerable
from router.core.errors import ScorerFault
from router.core.policy import Policy
from router.snapshot import DecisionSample

MOST_SAMPLES = 300


class ShareChange(msgspec.Struct, frozen=True):
    """One instance's share of the decisions, 0..1, before and after."""

    instance: str
    before: float
    after: float


class Preview(msgspec.Struct, frozen=True):
    """The outcome; ``reason`` says why there is none."""

    decisions: int
    moved: int
    shares: tuple[ShareChange, ...]
    reason: str = ""

    @property
    def moved_share(self) -> float:
        """Share of the decisions that would have gone elsewhere, 0..1."""
        return self.moved / self.decisions if self.decisions else 0.0


def preview(policy: Policy, name: str) -> Preview:
    """Ask a policy about the newest decisions made under the policy of this name, or, failing these, under any."""
    recent = hub().decisions.recent(MOST_SAMPLES)
    own = [sample for sample in recent if sample.policy.rpartition("@")[0] == name]
    return preview_of(policy, own or recent)


def preview_of(policy: Policy, samples: Sequence[DecisionSample]) -> Preview:
    """Ask a policy about some decisions."""
    if not is_answerable(policy):
        return Preview(0, 0, (), f"Scorer {policy.scorer} or a term of it reads more than decision samples hold.")
    try:
        chosen = [(sample.chosen, decide_again(sample, policy).chosen) for sample in samples if sample.chosen]
    except ScorerFault as error:
        return Preview(0, 0, (), str(error))
    if not chosen:
        return Preview(0, 0, (), "No decision was explained lately; the preview needs some traffic.")
    pairs = [(before, "nobody" if after is None else after.view.name) for before, after in chosen]
    return Preview(len(pairs), sum(before != after for before, after in pairs), _shares(pairs))


def _shares(pairs: Sequence[tuple[str | None, str]]) -> tuple[ShareChange, ...]:
    before, after = Counter(b for b, _ in pairs), Counter(a for _, a in pairs)
    names = sorted({*(name for name in before if name), *after})
    return tuple(ShareChange(name, before[name] / len(pairs), after[name] / len(pairs)) for name in names)
