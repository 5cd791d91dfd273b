"""What is known about these policies comes out of the simulator, with wide margins.

Sixteen A100s. A fleet of them sustains about 79 requests/s of ChatBot and 30 of Coder (see the results page), so 55
and 21 are about 70 %.
"""

from functools import cache

import pytest

from router.sim.metrics import RunSummary
from router.sim.policy_text import parse_policy
from router.sim.runner import Job, Setting, run_job
from router.sim.scenario import Scenario, fleet_of
from router.sim.traces.generator import generate
from router.sim.traffic import RecordedTraffic

BUSY = {"chatbot": 55.0, "coder": 21.0}
QUIET = {"chatbot": 6.0, "coder": 3.0}
DURATION_S = {55.0: 60, 21.0: 90, 6.0: 200, 3.0: 300, 90.0: 60, 95.0: 60, 35.0: 120}


@cache
def run(workload: str, rate: float, policy: str, hardware: str | None = None) -> RunSummary:
    trace = generate(workload, duration_s=DURATION_S[rate], requests_per_s=rate)
    traffic = RecordedTraffic(Scenario(trace=trace, fleet=fleet_of(hardware, 16)))
    return run_job(Setting(traffic), Job(parse_policy(policy)), lambda _: None).summary


@pytest.mark.parametrize("workload", BUSY)
def test_the_product_beats_request_counts_by_a_quarter_of_the_first_token_time(workload: str) -> None:
    ours, vllm = (run(workload, BUSY[workload], policy) for policy in ("multiplicative", "vllm"))
    assert ours.ttft_s.mean < 0.75 * vllm.ttft_s.mean
    assert ours.hit_ratio > vllm.hit_ratio + 0.1


def test_queued_prefill_belongs_into_the_product() -> None:
    ours, raw = (run("chatbot", BUSY["chatbot"], policy) for policy in ("multiplicative", "multiplicative_raw"))
    assert ours.ttft_s.p99 < 0.9 * raw.ttft_s.p99


@pytest.mark.parametrize("workload", QUIET)
def test_pending_prefill_alone_crowds_few_instances_when_there_is_little_to_do(workload: str) -> None:
    ours, prefill = (run(workload, QUIET[workload], policy) for policy in ("multiplicative", "least_pending_prefill"))
    assert prefill.load_max_over_mean > 1.3 * ours.load_max_over_mean
    assert prefill.tpot_s.p99 > 1.05 * ours.tpot_s.p99


def test_at_low_load_policies_are_close() -> None:
    runs = [run("chatbot", QUIET["chatbot"], name) for name in ("multiplicative", "linear", "llm_d", "llm_d_predict")]
    for one in runs:
        assert one.e2e_s.mean == pytest.approx(runs[0].e2e_s.mean, rel=0.1)
        assert one.tpot_s.mean == pytest.approx(runs[0].tpot_s.mean, rel=0.1)


def gap(summary: RunSummary) -> float:
    low, high = sorted(summary.ttft_mean_by_hardware_s.values())
    return 1 - low / high


def test_normalised_scores_narrow_the_gap_between_kinds_of_hardware() -> None:
    """Prefill on an H100 is 3.2 times as fast, so the gap narrows with (1, 1), and only a small b turns it around."""
    mixed = "a100-80g:8,h100:8"
    plain = run("chatbot", 90.0, "multiplicative", mixed)
    default = run("chatbot", 90.0, "multiplicative:normalize=1", mixed)
    by_time = run("chatbot", 90.0, "multiplicative:normalize=1:b=0.05", mixed)
    assert gap(plain) > 0.5
    assert gap(default) < gap(plain) - 0.03
    assert default.ttft_s.mean < 0.97 * plain.ttft_s.mean
    kinds = by_time.ttft_mean_by_hardware_s
    assert kinds["a100-80g"] < kinds["h100"], "between b = 0.05 and b = 1 lies one that closes the gap"


MIXED_BUSY = {"chatbot": 95.0, "coder": 35.0}
"""About 70 % of what 8 x A100 and 8 x H100 sustain."""


@pytest.mark.parametrize("workload", MIXED_BUSY)
def test_learning_from_first_tokens_closes_the_gap_between_kinds_of_hardware(workload: str) -> None:
    """Long prompts go to the fast kind and short ones to the slow kind, which the fleet as a whole gains from."""
    plain, normalised, learnt = (
        run(workload, MIXED_BUSY[workload], policy, "a100-80g:8,h100:8")
        for policy in (
            "multiplicative",
            "multiplicative:normalize=1",
            "multiplicative:normalize=1:equalize_ttft=1",
        )
    )
    assert min(gap(plain), gap(normalised)) > 0.3
    assert gap(learnt) < 0.1
    assert learnt.ttft_s.mean < normalised.ttft_s.mean
    assert learnt.ttft_s.p99 < 0.9 * normalised.ttft_s.p99
    assert learnt.tpot_s.p99 < plain.tpot_s.p99
    assert 0.1 < learnt.request_share_by_hardware["a100-80g"] < 0.4
    assert sum(learnt.request_share_by_hardware.values()) == pytest.approx(1)
