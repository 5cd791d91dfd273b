"""What is generated: a literal table of kinds of traffic, with the published statistics they are calibrated to."""

from collections.abc import Mapping

import msgspec


class GeneratorProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of traffic.

    The first block are published means, which every generated sample meets; the second are assumptions about its
    structure. A request is a turn of a session: ``follow_up`` of the turns are followed by another one, which repeats
    the conversation so far (``kept_output`` of each answer) behind the system prompt of its class.
    """

    name: str
    source: str
    requests_per_s: float
    mean_prompt_tokens: float
    mean_output_tokens: float
    ideal_hit_ratio: float

    duration_s: float = 3600.0
    classes: int
    """Distinct system prompts, chosen with Zipf's law (exponent ``zipf``)."""
    zipf: float = 1.0
    follow_up: float
    kept_output: float = 1.0
    user_sigma: float = 1.0
    """Spread (of the logarithm) of what a user adds in a turn."""
    output_sigma: float = 0.9
    think_mean_s: float = 30.0
    arrival_cv: float = 1.0
    """Coefficient of variation of the time between session starts (1: Poisson)."""
    burst_share: float = 0.0
    """Share of the sessions that belong to the first class during the middle third (a hot prefix)."""


_PROFILES = (
    GeneratorProfile(
        name="chatbot",
        source="Qwen-Bailian A (chat), 2 h, 43,058 requests",
        requests_per_s=5.98,
        mean_prompt_tokens=2331,
        mean_output_tokens=430,
        ideal_hit_ratio=0.579,
        classes=40,
        follow_up=0.5,
        user_sigma=1.2,
    ),
    GeneratorProfile(
        name="coder",
        source="Qwen-Bailian coder, 2 h, 43,011 requests",
        requests_per_s=5.97,
        mean_prompt_tokens=5748,
        mean_output_tokens=808,
        ideal_hit_ratio=0.664,
        classes=12,
        follow_up=0.6,
    ),
    GeneratorProfile(
        name="api",
        source="Qwen-Bailian B (API and agents), 2 h, 172,800 requests",
        requests_per_s=24.0,
        mean_prompt_tokens=915,
        mean_output_tokens=92,
        ideal_hit_ratio=0.542,
        classes=160,
        follow_up=0.1,
        user_sigma=0.8,
        think_mean_s=5.0,
        arrival_cv=1.5,
    ),
    GeneratorProfile(
        name="agenttool",
        source="Mooncake toolagent, 1 h, 23,608 requests",
        requests_per_s=6.56,
        mean_prompt_tokens=8596,
        mean_output_tokens=182,
        ideal_hit_ratio=0.553,
        classes=60,
        follow_up=0.3,
        think_mean_s=5.0,
        arrival_cv=1.3,
    ),
    GeneratorProfile(
        name="thinking",
        source="Qwen-Bailian thinking, 2 h, 10,812 requests, with a hot prefix in the middle third",
        requests_per_s=1.50,
        mean_prompt_tokens=4763,
        mean_output_tokens=3651,
        ideal_hit_ratio=0.462,
        classes=30,
        follow_up=0.2,
        kept_output=0.25,
        output_sigma=0.7,
        burst_share=0.5,
    ),
)

GENERATORS: Mapping[str, GeneratorProfile] = {profile.name: profile for profile in _PROFILES}
