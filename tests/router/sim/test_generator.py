"""Generated traffic has the published statistics, whatever the seed."""

import pytest

from router.sim.errors import TraceError
from router.sim.traces.generator import generate
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.statistics import statistics_of


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_generators_are_calibrated_within_five_percent(name: str, seed: int) -> None:
    profile = GENERATORS[name]
    found = statistics_of(generate(name, seed=seed, duration_s=900))
    assert found.requests_per_s == pytest.approx(profile.requests_per_s, rel=0.05)
    assert found.mean_prompt_tokens == pytest.approx(profile.mean_prompt_tokens, rel=0.05)
    assert found.mean_output_tokens == pytest.approx(profile.mean_output_tokens, rel=0.05)
    assert found.ideal_hit_ratio == pytest.approx(profile.ideal_hit_ratio, rel=0.05)


def test_a_denser_trace_is_calibrated_too() -> None:
    found = statistics_of(generate("chatbot", duration_s=120, requests_per_s=60))
    assert found.requests_per_s == pytest.approx(60, rel=0.05)
    assert found.ideal_hit_ratio == pytest.approx(GENERATORS["chatbot"].ideal_hit_ratio, rel=0.05)


def test_the_same_seed_gives_the_same_trace() -> None:
    one, same, other = (generate("api", seed=seed, duration_s=30) for seed in (4, 4, 5))
    assert one == same
    assert one != other


def test_turns_repeat_the_conversation_before_them() -> None:
    trace = generate("coder", duration_s=300)
    last: dict[str | None, bytes] = {}
    follow_ups = 0
    for request in trace.requests:
        if request.session in last:
            follow_ups += 1
            assert request.blocks.startswith(last[request.session])
        last[request.session] = request.blocks
        assert len(request.blocks) == request.prompt_tokens // 16 * 8
    assert follow_ups > len(trace.requests) / 4


def test_a_hot_prefix_takes_over_in_the_middle_third() -> None:
    trace = generate("thinking", duration_s=3600)
    heads = [[r.blocks[:8] for r in trace.requests if low <= r.arrival_s < low + 1200] for low in (0, 1200, 2400)]
    hot = max(set(heads[1]), key=heads[1].count)
    before, during, after = (part.count(hot) / len(part) for part in heads)
    assert during > 0.5
    assert before < 0.35
    assert after < 0.35


def test_nonsense_is_refused() -> None:
    with pytest.raises(TraceError, match="no such generator"):
        generate("poetry")
    with pytest.raises(TraceError, match="are none"):
        generate("api", duration_s=1, requests_per_s=0.1)
