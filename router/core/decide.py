"""filter -> score -> pick: the only place where an instance is chosen."""

from collections.abc import Mapping, Sequence
from math import isfinite
from random import Random

from msgspec.structs import replace

from router.core.balance import balanced
from router.core.candidate import Candidate, hit_tokens
from router.core.cold_start import is_cold, warm_mean_bs
from router.core.decision import Decision
from router.core.errors import ScorerFault
from router.core.filters import FILTERS, TERM_FILTERS
from router.core.instance import InstanceView
from router.core.pickers.smallest import pick_smallest
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers import scorer_of
from router.core.scorers.spec import ScorerSpec
from router.core.situation import CALM, Hit, Situation
from router.core.terms import ColdStart


def decide(
    request: Request,
    views: Sequence[InstanceView],
    matched_blocks: Mapping[int, int] | Sequence[int],
    policy: Policy,
    rng: Random,
    situation: Situation = CALM,
) -> Decision:
    """Choose an instance for a request; nothing is changed, and equal arguments give equal decisions.

    :param views: the fleet, in any order.
    :param matched_blocks: by slot, how many leading prefix blocks of the prompt that instance holds.
    :param rng: only read by scorers or ties that are random by definition.
    :param situation: the time and the mitigation of hotspots, for policies with such terms; hits that are exact.
    :raises InvalidPolicy: when the policy names no known scorer.
    :raises ScorerFault: when a scorer returns anything but one finite number per candidate.
    """
    if situation.hits is None:
        candidates = _candidates(request, views, matched_blocks)
    else:
        candidates = _told_candidates(request, views, matched_blocks, situation.hits)
    filters = FILTERS
    if situation.hot is not None or not policy.plain:
        candidates = _weighed(candidates, policy, situation)
        filters = FILTERS + TERM_FILTERS
    rejected: list[tuple[Candidate, str]] = []
    for find_rejected in filters:
        reasons = find_rejected(request, candidates, policy, situation)
        if reasons:
            rejected += [(candidates[position], reason) for position, reason in reasons.items()]
            candidates = [c for position, c in enumerate(candidates) if position not in reasons]
    if not candidates:
        return Decision(request, policy, (), (), None, rejected, situation.hot)
    spec = scorer_of(policy)
    scores = _score(spec, request, candidates, policy, rng)
    index = pick_smallest(candidates, scores, spec.tie_break, rng, request.preferred)
    return Decision(request, policy, candidates, scores, index, rejected, situation.hot)


def _candidates(
    request: Request, views: Sequence[InstanceView], matched_blocks: Mapping[int, int] | Sequence[int]
) -> list[Candidate]:
    """Say what the request would cost at each instance; neighbours that match alike share one calculation."""
    prompt_tokens = request.prompt_tokens
    candidates: list[Candidate] = []
    matched = kv_block_tokens = hit = -1
    for view in views:
        if matched_blocks[view.slot] != matched or view.kv_block_tokens != kv_block_tokens:
            matched, kv_block_tokens = matched_blocks[view.slot], view.kv_block_tokens
            hit = hit_tokens(matched, request.tokens_per_block, prompt_tokens, kv_block_tokens)
        candidates.append(Candidate(view, hit, prompt_tokens - hit))
    return candidates


def _told_candidates(
    request: Request,
    views: Sequence[InstanceView],
    matched_blocks: Mapping[int, int] | Sequence[int],
    hits: Mapping[int, Hit],
) -> list[Candidate]:
    """As :func:`_candidates`, with the hits that instances told themselves in the place of estimates."""
    prompt_tokens = request.prompt_tokens
    candidates: list[Candidate] = []
    for view in views:
        hit = hits.get(view.slot)
        if hit is None:
            candidates += _candidates(request, (view,), matched_blocks)
        else:
            tokens = hit.tokens
            candidates.append(Candidate(view, tokens, prompt_tokens - tokens, 0, 0, 1.0, hit.exact))
    return candidates


def _weighed(candidates: list[Candidate], policy: Policy, situation: Situation) -> list[Candidate]:
    """Charge cold and spot instances, and kinds of hardware that answer late, what the policy's terms say."""
    if policy.cold_start is not None:
        candidates = _charge_cold(candidates, policy.cold_start, situation.now_s)
    spot = policy.spot
    if spot is not None and spot.factor != 1:
        candidates = [replace(c, factor=spot.factor) if c.view.spot else c for c in candidates]
    if policy.equalize_ttft is not None and situation.balance is not None:
        candidates = balanced(candidates, situation.balance)
    return candidates


def _charge_cold(candidates: list[Candidate], rule: ColdStart, now_s: float) -> list[Candidate]:
    if all(c.view.cold_since_s is None for c in candidates):
        return candidates
    mean = warm_mean_bs((c.view for c in candidates), rule, now_s)
    floor = 0 if mean is None else int(rule.bs_floor_share * mean) + 1
    return [
        replace(c, p_offset=rule.p_offset, bs_floor=floor) if is_cold(c.view, rule, now_s) else c for c in candidates
    ]


def _score(
    spec: ScorerSpec, request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random
) -> Sequence[float]:
    try:
        scores = spec.score(request, candidates, policy, rng)
        _check_scores(spec, candidates, scores)
    except ArithmeticError as error:
        raise ScorerFault(f"scorer {spec.name} under policy {policy.label}: {error}") from error
    return scores


def _check_scores(spec: ScorerSpec, candidates: Sequence[Candidate], scores: Sequence[float]) -> None:
    if len(scores) != len(candidates):
        raise ScorerFault(f"scorer {spec.name} returned {len(scores)} scores for {len(candidates)} candidates")
    if isfinite(sum(scores)):
        return
    for candidate, score in zip(candidates, scores, strict=True):
        if not isfinite(score):
            raise ScorerFault(f"scorer {spec.name} gave instance {candidate.view.name} the score {score}")
    raise ScorerFault(f"scorer {spec.name} gave scores whose sum is not finite")
