"""Deciding recorded requests again under another policy. Pure.

Each decision is asked by itself, with the counters that it saw: what other choices would have done to the requests
after them is not played out (the simulator does that), and is said with the answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from controlplane.telemetry.what_if import Answer, decide_again
from router.core.hardware import HardwareProfile
from router.core.policy import Policy
from router.snapshot import CandidateSample, DecisionSample


class Share(msgspec.Struct, frozen=True):
    """The requests of one instance."""

    instance: str
    before: int
    after: int


class Predicted(msgspec.Struct, frozen=True):
    """Means over the requests, from the hardware profiles of the chosen instances; None where one is not known."""

    ttft_s: float | None
    tpot_s: float | None


class ReplayPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would have done to recorded requests."""

    requests: int
    """Those that were decided again."""
    unknown: int
    """Requests of which something that the policy reads is not known."""
    reason: str
    """What that was for most of them; empty where there are none."""
    moved: int
    """Requests that would have gone elsewhere."""
    refused: int
    """Requests that would have found no instance."""
    shares: tuple[Share, ...]
    before: Predicted
    after: Predicted


_NOTHING = Predicted(None, None)


def replay(samples: Sequence[DecisionSample], policy: Policy, hardware: Mapping[str, HardwareProfile]) -> ReplayPreview:
    """Decide samples again.

    :param hardware: profiles by the instance's name, of those that have one.
    """
    chosen = [sample for sample in samples if sample.chosen is not None]
    answers = [(sample, decide_again(sample, policy)) for sample in chosen]
    reasons = Counter(answer.unknown for _, answer in answers if answer.unknown)
    pairs = [(sample, _name(answer)) for sample, answer in answers if not answer.unknown]
    before = Counter(sample.chosen for sample, _ in pairs if sample.chosen is not None)
    after = Counter(name for _, name in pairs if name is not None)
    return ReplayPreview(
        requests=len(pairs),
        unknown=reasons.total(),
        reason=reasons.most_common(1)[0][0] if reasons else "",
        moved=sum(name is not None and name != sample.chosen for sample, name in pairs),
        refused=sum(name is None for _, name in pairs),
        shares=tuple(Share(name, before[name], after[name]) for name in sorted(before | after)),
        before=_predicted([(sample, sample.chosen) for sample, _ in pairs], hardware),
        after=_predicted(pairs, hardware),
    )


def _name(answer: Answer) -> str | None:
    chosen = None if answer.decision is None else answer.decision.chosen
    return None if chosen is None else chosen.view.name


def _predicted(
    pairs: Sequence[tuple[DecisionSample, str | None]], hardware: Mapping[str, HardwareProfile]
) -> Predicted:
    ttfts, tpots = [], []
    for sample, name in pairs:
        candidate = next((c for c in sample.candidates if c.instance == name), None)
        if name is None or candidate is None:
            continue
        profile = hardware.get(name)
        if profile is None:
            return _NOTHING
        ttfts.append(_ttft_s(candidate, profile))
        tpots.append(profile.step_s(sequences=candidate.bs))
    return Predicted(fmean(ttfts), fmean(tpots)) if ttfts else _NOTHING


def _ttft_s(candidate: CandidateSample, profile: HardwareProfile) -> float:
    """Prefill what is queued and this prompt, and then the first decoding step with everybody there."""
    return candidate.p_token / profile.prefill_tokens_per_s + profile.step_s(sequences=candidate.bs)
