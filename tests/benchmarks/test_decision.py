"""The decision is fast enough: the targets, at the median on one core, against a million stored blocks."""

from collections.abc import Mapping

import pytest

from router.bench import dynamo
from router.bench.decision import run
from router.core.prefix import IMPLEMENTATION

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(300),
    pytest.mark.skipif(IMPLEMENTATION != "native", reason="the targets are those of the compiled prefix index"),
]

MOST = {
    "hash_match_us_p50_16": 60,
    "hash_match_us_p50_128": 120,
    "decide_us_p50_16": 10,
    "decide_us_p50_128": 50,
    "memory_mb_per_million_blocks_16": 130,
    "memory_mb_per_million_blocks_128": 130,
}


@pytest.fixture(scope="module")
def figures() -> Mapping[str, float | str]:
    """One run for all."""
    return run()


@pytest.mark.parametrize("name", MOST)
def test_a_decision_costs_no_more_than_its_target(figures: Mapping[str, float | str], name: str) -> None:
    assert figures[name] <= MOST[name]


@pytest.mark.parametrize("instances", [16, 128])
def test_tracking_prefix_classes_costs_less_than_a_twentieth_of_a_decision(
    figures: Mapping[str, float | str], instances: int
) -> None:
    assert figures[f"track_class_us_p50_{instances}"] < 0.05 * figures[f"hash_match_decide_us_p50_{instances}"]


@pytest.mark.skipif(not dynamo.AVAILABLE, reason="ai-dynamo-runtime is not installed (extra: bench)")
@pytest.mark.parametrize("instances", [16, 128])
def test_hashing_and_matching_are_faster_than_dynamos(figures: Mapping[str, float | str], instances: int) -> None:
    assert figures[f"dynamo_over_pointsman_hash_match_p50_{instances}"] > 1
    own, other = figures[f"stored_blocks_{instances}"], figures[f"dynamo_stored_blocks_{instances}"]
    assert other == pytest.approx(own, rel=0.1)
