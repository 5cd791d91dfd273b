"""Calibrated traffic has its rate from the first second, and still its published prompts and hits."""

import pytest

from router.replay.generated import steady_lap
from router.sim.traces.generator_profiles import GENERATORS


@pytest.mark.parametrize("kind", ["chatbot", "api"])
def test_the_rate_is_there_from_the_beginning(kind: str) -> None:
    trace = steady_lap(kind, seed=3, rate=10.0, duration_s=600.0)
    moments = [request.arrival_s for request in trace.requests]
    assert moments == sorted(moments)
    assert len(moments) / moments[-1] == pytest.approx(10.0, rel=0.05)
    assert sum(moment < 60 for moment in moments) == pytest.approx(600, rel=0.25)


def test_prompts_keep_their_published_mean() -> None:
    trace = steady_lap("chatbot", seed=3, rate=10.0, duration_s=600.0)
    mean = sum(request.prompt_tokens for request in trace.requests) / len(trace.requests)
    assert mean == pytest.approx(GENERATORS["chatbot"].mean_prompt_tokens, rel=0.15)


def test_laps_with_other_seeds_are_other_sessions() -> None:
    laps = [steady_lap("api", seed=seed, rate=5.0, duration_s=60.0) for seed in (1, 1, 2)]
    assert laps[0] == laps[1] != laps[2]
