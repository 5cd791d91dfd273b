"""Deciding recorded requests again under another policy. Pure.

Each decision is asked by itself, with the counters that it saw: what other choices would have done to the requests
after them is not played out (the simulator does that), and is said with the answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from controlplane.telemetry.what_if import decide_again, is_answerable
from router.core.errors import ScorerFault
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

    answerable: bool
    """Whether recorded decisions hold everything that the policy reads."""
    requests: int
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
    answering = [sample for sample in samples if is_answerable(policy, sample)]
    if not is_answerable(policy) or (samples and not answering):
        return ReplayPreview(
            answerable=False, requests=0, moved=0, refused=0, shares=(), before=_NOTHING, after=_NOTHING
        )
    pairs = [(sample, _chosen_again(sample, policy)) for sample in answering if sample.chosen is not None]
    before = Counter(sample.chosen for sample, _ in pairs if sample.chosen is not None)
    after = Counter(chosen for _, chosen in pairs if chosen is not None)
    return ReplayPreview(
        answerable=True,
        requests=len(pairs),
        moved=sum(chosen is not None and chosen != sample.chosen for sample, chosen in pairs),
        refused=sum(chosen is None for _, chosen in pairs),
        shares=tuple(Share(name, before[name], after[name]) for name in sorted(before | after)),
        before=_predicted([(sample, sample.chosen) for sample, _ in pairs], hardware),
        after=_predicted(pairs, hardware),
    )


def _chosen_again(sample: DecisionSample, policy: Policy) -> str | None:
    try:
        chosen = decide_again(sample, policy).chosen
    except ScorerFault:
        return None
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
