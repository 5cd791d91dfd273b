"""The results page is what was measured, and says who wins where."""

from pathlib import Path

import msgspec
import pytest

from router.sim.metrics import Distribution, RunSummary, Slo
from router.sim.sweep import Saturation
from tests.benchmarks.results import plan
from tests.benchmarks.results.measure import CaseResult, Results
from tests.benchmarks.results.render import page

DOCS = Path(__file__).resolve().parents[3] / "docs"


def run(policy: str, ttft_s: float) -> RunSummary:
    """One run, all of whose times follow from one."""
    times = Distribution(ttft_s, ttft_s, ttft_s, ttft_s * 4)
    fields: dict[str, object] = dict.fromkeys(RunSummary.__struct_fields__, 1)
    fields |= {"policy": policy, "scorer": policy, "ttft_s": times, "tpot_s": times, "e2e_s": times}
    fields |= {"hit_ratio": 0.5, "ttft_mean_by_hardware_s": {"a100-80g": 0.2, "h100": 0.15}, "goodput_per_s": 2.0}
    fields |= {"request_share_by_hardware": {"a100-80g": 0.25, "h100": 0.75}}
    return RunSummary(**fields)  # type: ignore[arg-type]


def result(case: plan.Case, policies: tuple[str, ...], shares: tuple[str, ...]) -> CaseResult:
    """Ours at 100 ms, the first rival at 50 ms, the others slower and slower."""
    runs = [run(name, 0.1 if name == "multiplicative" else 0.05 * (i + 1)) for i, name in enumerate(policies)]
    saturation = {"multiplicative": Saturation(2.0, 30.0, 2.1)}
    return CaseResult(case=case, provenance="made up", saturation=saturation, runs=dict.fromkeys(shares, runs))


@pytest.fixture
def made_up() -> Results:
    shares = ("50%", "70%", "85%")
    policies = ("vllm", *(name for name in plan.BASELINES if name != "vllm"))
    past = ("multiplicative", "multiplicative:c=0.75", "marginal_delay")
    return Results(
        slo=Slo(),
        main=[result(case, policies, shares) for case in plan.GENERATED],
        linear=[result(case, ("multiplicative", *plan.LINEAR), ("70%",)) for case in plan.GENERATED],
        past_saturation=[result(case, past, ("110%",)) for case in plan.GENERATED],
        thinking=result(plan.THINKING, plan.REAL, shares),
        mixed=[result(case, plan.MIXED, shares) for case in plan.GENERATED[:2]],
        recorded=[result(plan.MOONCAKE, plan.REAL, shares), result(plan.CLAUDE, plan.REAL, ("fixed",))],
    )


def test_the_first_table_has_every_headline_policy_of_every_workload(made_up: Results) -> None:
    table = page(made_up).split("## First table")[1].split("## ")[0]
    for name in plan.HEADLINE:
        assert table.count(f"`{name}`") >= len(plan.GENERATED)
    for column in ("TTFT mean", "TTFT p99", "TPOT mean", "TPOT p99", "KV hit ratio"):
        assert column in table


def test_losses_are_said(made_up: Results) -> None:
    text = page(made_up)
    (row,) = [line for line in text.splitlines() if line.startswith("| ChatBot | mean TTFT |")]
    assert row.count("`vllm` -50%") == 3
    assert "| ChatBot | `vllm` | +100% |" in text


def test_the_gap_of_a_mixed_fleet_is_said_without_and_with_what_is_learnt(made_up: Results) -> None:
    section = page(made_up).split("## A mixed fleet")[1].split("## ")[0]
    assert "plain 25.0% to 25.0%, normalised 25.0% to 25.0%, learnt 25.0% to 25.0%" in section
    assert "below 10 % in 0 of 6 cells" in section
    assert f"| `{plan.EQUALISED}` | 200 ms | 150 ms | 25.0% | 25.0% |" in section


def test_what_is_real_and_what_is_generated_is_said(made_up: Results) -> None:
    text = page(made_up)
    assert text.count(plan.Origin.GENERATED.value) >= len(plan.GENERATED)
    assert text.count(plan.Origin.RECORDED.value) >= 2


def test_the_page_is_not_typed_by_hand() -> None:
    results = msgspec.json.decode((DOCS / "results.json").read_bytes(), type=Results)
    assert (DOCS / "results.md").read_text() == page(results)
