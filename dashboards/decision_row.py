"""A decision sample as the pages show it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from controlplane.telemetry.what_if import Alternative
from router.snapshot import CandidateSample, DecisionSample


class DecisionRow(msgspec.Struct, frozen=True):
    """One decision, with what a reader wants to know first."""

    sample: DecisionSample
    winner: CandidateSample | None
    runner_up: CandidateSample | None
    times_next: float | None
    """Score of the runner-up over that of the winner; None without either, or when the winner scored 0."""
    racing: int
    out: int

    @property
    def policy_name(self) -> str:
        """Name of the policy that decided, without its revision."""
        return self.sample.policy.rpartition("@")[0] or self.sample.policy


class CandidateRow(NamedTuple):
    """One candidate and its score over that of the chosen one (None where there is none)."""

    candidate: CandidateSample
    is_chosen: bool
    times_chosen: float | None

    @property
    def instance_name(self) -> str:
        """Name of the instance that was registered; a data-parallel rank is behind it."""
        return self.candidate.instance.partition("#")[0]


class Agreement(NamedTuple):
    """How many of the policies that were asked would have chosen the same instance, or another one."""

    asked: int
    same: int
    other: int
    unknown: int


def agreement(asked: Sequence[Alternative]) -> Agreement:
    """Return how many agree with what was chosen."""
    known = [one for one in asked if not one.unknown]
    same = sum(one.agrees for one in known)
    return Agreement(len(asked), same, len(known) - same, len(asked) - len(known))


def decision_row(sample: DecisionSample) -> DecisionRow:
    """Return a sample with its winner and runner-up."""
    scored = [candidate for candidate in sample.candidates if candidate.score is not None]
    winner = next((candidate for candidate in scored if candidate.instance == sample.chosen), None)
    others = [candidate for candidate in scored if candidate is not winner]
    runner_up = min(others, key=lambda candidate: candidate.score or 0.0, default=None)
    return DecisionRow(
        sample,
        winner,
        runner_up,
        _times(runner_up, winner),
        racing=len(scored),
        out=len(sample.candidates) - len(scored),
    )


def candidate_rows(sample: DecisionSample) -> Iterator[CandidateRow]:
    """Return every candidate in the order of the sample: best first, those filtered out last."""
    winner = decision_row(sample).winner
    for candidate in sample.candidates:
        yield CandidateRow(candidate, candidate is winner, _times(candidate, winner))


def matching(samples: Iterable[DecisionSample], text: str, workload: str, instance: str) -> Iterator[DecisionSample]:
    """Return the samples that a reader asked for; empty arguments ask for nothing.

    :param text: part of a request id, a model or a policy.
    :param instance: name of the chosen instance.
    """
    wanted = text.strip().lower()
    for sample in samples:
        searched = f"{sample.request_id}\n{sample.model}\n{sample.policy}".lower()
        if wanted in searched and workload in {"", sample.workload} and instance in {"", sample.chosen}:
            yield sample


def _times(candidate: CandidateSample | None, winner: CandidateSample | None) -> float | None:
    if candidate is None or winner is None or candidate.score is None or not winner.score:
        return None
    return candidate.score / winner.score
