"""Every baseline chooses what its published rule says, on fleets small enough to check by hand."""

from collections import Counter
from random import Random

import pytest

from router.core.candidate import Candidate
from router.core.errors import InvalidPolicy
from router.core.hardware_profiles import A100_80G
from router.core.instance import InstanceView
from router.core.pickers.smallest import pick_smallest
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers import SCORERS, check_policy
from router.core.scorers.ranking import dense_ranks

PROMPT = 1000


def candidate(slot: int, hit: int = 0, **view: object) -> Candidate:
    return Candidate(InstanceView(slot=slot, name=f"i{slot}", **view), hit, PROMPT - hit)  # type: ignore[arg-type]


def scores(scorer: str, *candidates: Candidate, **params: float) -> list[float]:
    policy = Policy(scorer=scorer, params=params)
    check_policy(policy)
    request = Request(id="r", model="m", prompt_tokens=PROMPT)
    return list(SCORERS[scorer].score(request, candidates, policy, Random(0)))


def chosen(scorer: str, *candidates: Candidate, **params: float) -> int:
    values = scores(scorer, *candidates, **params)
    return pick_smallest(candidates, values, SCORERS[scorer].tie_break, Random(0))


def test_vllm_counts_requests_and_charges_for_queues_before_a_filling_cache() -> None:
    busy = candidate(0, bs=5, waiting=2, kv_use=0.75)
    assert scores("vllm", busy, candidate(1, bs=5, waiting=2, kv_use=0.5)) == [5 + 2 * 6 * 0.25, 5]
    assert scores("vllm", candidate(0, bs=5, own_requests=4), clients=2.0) == [8]
    assert scores("vllm_v1", candidate(0, bs=5, waiting=2, running=3)) == [11]


def test_linear_weighs_misses_against_load() -> None:
    cached, idle = candidate(0, hit=800, bs=7), candidate(1, bs=1)
    assert scores("linear", cached, idle) == pytest.approx([0.7 * 0.2 + 0.3, 0.7 + 0.3 * 2 / 8])
    assert chosen("linear", cached, idle) == 0
    assert chosen("linear", cached, idle, L=0.3) == 1


def test_dynamo_adds_blocks_to_prefill_and_blocks_in_use() -> None:
    one = candidate(0, hit=160, queued_prefill_tokens=320, active_kv_tokens=1600)
    assert scores("dynamo", one) == [(320 + 840 + 1600 + PROMPT) / 16]
    assert scores("dynamo", one, overlap_weight=2.0) == [(2 * 1160 + 1600 + PROMPT) / 16]


def test_dynamo_draws_from_the_softmax_at_a_temperature() -> None:
    pair = (candidate(0), candidate(1, active_kv_tokens=1600))
    policy = Policy(scorer="dynamo", params={"temperature": 1.0})
    rng, request = Random(3), Request(id="r", model="m", prompt_tokens=PROMPT)
    draws = Counter(
        pick_smallest(pair, list(SCORERS["dynamo"].score(request, pair, policy, rng)), SCORERS["dynamo"].tie_break, rng)
        for _ in range(4000)
    )
    # Scaled to 0 and 1: exp(0) to exp(-1), that is 73 % to 27 %.
    assert draws[0] / 4000 == pytest.approx(0.731, abs=0.03)


def test_llm_d_sums_prefix_queue_and_free_kv() -> None:
    first = candidate(0, hit=500, waiting=4, kv_use=0.5)
    second = candidate(1, waiting=0, kv_use=0.25)
    assert scores("llm_d", first, second) == pytest.approx([-(3 * 0.5 + 0 + 2 * 0.5), -(0 + 2 + 2 * 0.75)])
    assert scores("llm_d", candidate(0, kv_use=None)) == pytest.approx([-(0 + 2 + 2)])


def test_llm_d_predict_predicts_steps_slowed_by_decodes() -> None:
    there = candidate(0, queued_prefill_tokens=8000, running=10, active_kv_tokens=50_000, hardware=A100_80G)
    beside_s = 0.008 + 10 * 0.12e-3 + 50_000 * 2e-8
    assert scores("llm_d_predict", there) == pytest.approx([9000 / 20_000 + 2 * beside_s])
    assert scores("llm_d_predict_off", there) == pytest.approx([1.3 * 9000 / 20_000 + 0.7 * 2 * beside_s])
    with pytest.raises(InvalidPolicy, match="no hardware profile"):
        scores("llm_d_predict", candidate(0))


def test_sglang_follows_the_prefix_until_load_is_uneven() -> None:
    cached, idle = candidate(0, hit=400, bs=60), candidate(1, bs=0)
    assert chosen("sglang", cached, idle) == 0
    assert chosen("sglang", candidate(0, hit=300, bs=60), idle) == 1
    assert chosen("sglang", candidate(0, hit=400, bs=65), idle) == 1


def test_aibrix_follows_the_longest_match_within_the_usual_load() -> None:
    matched = candidate(0, hit=900, bs=4)
    assert chosen("aibrix", matched, candidate(1, hit=500, bs=4), candidate(2, bs=4)) == 0
    assert chosen("aibrix", candidate(0, hit=900, bs=8), candidate(1, hit=500, bs=1), candidate(2, bs=1)) == 1
    assert chosen("aibrix", candidate(0, hit=900, bs=9), candidate(1, hit=500, bs=1), candidate(2, bs=0)) == 2


def test_preble_exploits_the_larger_cached_part_and_else_explores() -> None:
    costly = candidate(0, hit=500, windowed_prefill_tokens=90_000)
    assert chosen("preble", costly, candidate(1)) == 0
    assert chosen("preble", candidate(0, hit=496, windowed_prefill_tokens=90_000), candidate(1)) == 1


def test_our_own_variants_differ_only_in_what_they_leave_out() -> None:
    there = candidate(0, hit=400, bs=4, queued_prefill_tokens=1000)
    assert scores("multiplicative", there) == [1600 * 5]
    assert scores("multiplicative_raw", there) == [600 * 4]
    assert scores("least_pending_prefill", there) == [1600]
    assert scores("marginal_delay", there) == [1000 + 600 * 5]


def test_marginal_delay_is_the_product_with_c_at_zero() -> None:
    there = candidate(0, hit=400, bs=4, queued_prefill_tokens=1000)
    request = Request(id="r", model="m", prompt_tokens=PROMPT)
    product = SCORERS["multiplicative"].score(request, [there], Policy(c=0.0), Random(0))
    assert list(product) == pytest.approx(scores("marginal_delay", there))


def test_every_scorer_says_what_it_means_and_where_it_is_from() -> None:
    for name, spec in SCORERS.items():
        assert spec.name == name
        assert spec.meaning
        assert spec.source


def test_ranks_are_dense() -> None:
    assert dense_ranks([(2.0, 1.0), (1.0, 5.0), (2.0, 1.0), (3.0, 0.0)]) == [1, 0, 1, 2]
