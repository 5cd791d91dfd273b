"""What the results page compares: a literal plan."""

from enum import Enum

import msgspec

FLEET = 16
SHARES = (0.5, 0.7, 0.85)
MAIN_SHARE = 0.7
PAST_SATURATION = 1.1

HEADLINE = ("vllm", "llm_d", "llm_d_predict", "llm_d_predict_off", "multiplicative")
"""The policies of the first table."""

BASELINES = (
    "multiplicative",
    "marginal_delay",
    "multiplicative:c=0.75",
    "multiplicative_raw",
    "least_pending_prefill",
    "vllm",
    "vllm_v1",
    "llm_d",
    "llm_d_predict",
    "llm_d_predict_off",
    "linear",
    "dynamo",
    "sglang",
    "aibrix",
    "preble",
    "least_request",
    "round_robin",
    "random",
)
LINEAR = tuple(f"linear:L={weight / 100:g}" for weight in range(30, 91, 10))
CONTENDERS = ("multiplicative", "llm_d", "linear")
"""The policies among which the best saturation rate is looked for."""
REAL = ("multiplicative", "marginal_delay", "vllm", "llm_d", "llm_d_predict", "linear", "dynamo", "least_request")


class Origin(Enum):
    """Whether numbers come from a recording."""

    GENERATED = "calibrated generator"
    RECORDED = "real trace"
    LENGTHS = "real arrivals and lengths, no prefix hashes"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One workload. ``source`` is a generator or a file of the public traces."""

    title: str
    source: str
    origin: Origin
    duration_s: float | None = None
    instances: int = FLEET
    start_scale: float = 1.0
    """A rate scale to begin the search for saturation with."""
    fixed_scale: float | None = None
    """Run at this rate scale instead of shares of saturation (closed loops have none)."""


GENERATED = (
    Case(title="ChatBot", source="chatbot", origin=Origin.GENERATED, duration_s=120, start_scale=10),
    Case(title="Coder", source="coder", origin=Origin.GENERATED, duration_s=180, start_scale=4),
    Case(title="API", source="api", origin=Origin.GENERATED, duration_s=30, start_scale=12),
    Case(title="AgentTool", source="agenttool", origin=Origin.GENERATED, duration_s=120, start_scale=5),
)
THINKING = Case(
    title="Thinking, with a hot prefix in the middle third",
    source="thinking",
    origin=Origin.GENERATED,
    duration_s=900,
    start_scale=4,
)
MOONCAKE = Case(
    title="Mooncake conversation",
    source="chatbot_mooncake_conversation.jsonl.gz",
    origin=Origin.RECORDED,
    start_scale=5,
)
CLAUDE = Case(
    title="Claude Code sessions (closed loop, 4 instances, a session start every 2 s)",
    source="agenttool_claudecode_sessions_le64k.jsonl.gz",
    origin=Origin.RECORDED,
    instances=4,
    fixed_scale=10.0,
)
AZURE = Case(
    title="Azure conversation",
    source="chatbot_azure2023_conv_lengths.jsonl.gz",
    origin=Origin.LENGTHS,
    start_scale=10,
)
MIXED_HARDWARE = "a100-80g:8,h100:8"
NORMALISED = "multiplicative:normalize=1"
EQUALISED = "multiplicative:normalize=1:equalize_ttft=1"
MIXED = (
    "multiplicative",
    NORMALISED,
    EQUALISED,
    "multiplicative:normalize=1:b=0.2",
    "vllm",
    "llm_d_predict",
)
MIXED_CASES = ("ChatBot", "Coder", "AgentTool")
