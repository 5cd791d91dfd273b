"""What the hotspots page compares: a literal plan."""

import msgspec

from router.sim.traces.burst import Burst

FLEET = 16
SEED = 1

# -- bursts --

BASE_RATE = 4.5
"""Requests a second of the calm ``thinking`` traffic below every burst."""
BASE_DURATION_S = 1200.0
AFTER_S = 60.0
"""Requests that arrive this long after the burst are measured as well."""

SHAPES = (
    Burst(name="long prefix, long outputs", requests_per_s=4, shared_tokens=8192, own_tokens=200, output_tokens=4000),
    Burst(
        name="very long prefix, very long outputs",
        requests_per_s=1.5,
        shared_tokens=16_384,
        own_tokens=200,
        output_tokens=12_000,
    ),
    Burst(
        name="very long prefix, short outputs",
        requests_per_s=20,
        shared_tokens=16_384,
        own_tokens=200,
        output_tokens=64,
    ),
    Burst(name="short prefix, long outputs", requests_per_s=4, shared_tokens=1024, own_tokens=200, output_tokens=4000),
    Burst(
        name="short prefix, very long outputs",
        requests_per_s=1.5,
        shared_tokens=1024,
        own_tokens=200,
        output_tokens=12_000,
    ),
    Burst(name="short prefix, short outputs", requests_per_s=40, shared_tokens=1024, own_tokens=200, output_tokens=64),
)
PLAIN = "multiplicative"
MITIGATED = "multiplicative:hotspot=1"


class Treatment(msgspec.Struct, frozen=True):
    """A policy of ours under a burst, with or without preloading."""

    title: str
    policy: str
    preload: bool


PLAINLY = Treatment("plain", PLAIN, False)
ALONE = Treatment("mitigated", MITIGATED, False)
WIDENED = Treatment("mitigated and preloaded", MITIGATED, True)
TREATMENTS = (PLAINLY, Treatment("preloaded alone", PLAIN, True), ALONE, WIDENED)
BASELINES = ("vllm", "dynamo", "llm_d", "llm_d_predict", "linear", "sglang", "aibrix", "preble", "least_request")
TTFT_TARGET = 0.10
TPOT_TARGET = 0.25
"""How much worse than the best baseline the 99th percentiles may be."""

# -- ordinary workloads --


class Ordinary(msgspec.Struct, frozen=True):
    """One of the workloads without a burst, at a rate (requests a second)."""

    generator: str
    requests_per_s: float
    duration_s: float = 600.0


ORDINARY = (
    Ordinary("chatbot", 6),
    Ordinary("chatbot", 40),
    Ordinary("coder", 6),
    Ordinary("coder", 20),
    Ordinary("api", 24),
    Ordinary("api", 120, 300.0),
    Ordinary("agenttool", 6.5),
    Ordinary("agenttool", 20),
    Ordinary("thinking", BASE_RATE, BASE_DURATION_S),
)

# -- joining and restarting --

EVENT_S = 180.0
FIRST_S = 60.0
"""How long after an instance came its requests are measured."""
SEEDS = (1, 2)
EXTRA_TARGET_S = 0.05
LOADED = (
    Ordinary("chatbot", 40, EVENT_S + 2 * FIRST_S),
    Ordinary("coder", 18, EVENT_S + 2 * FIRST_S),
    Ordinary("api", 70, EVENT_S + 2 * FIRST_S),
    Ordinary("agenttool", 18, EVENT_S + 2 * FIRST_S),
    Ordinary("thinking", 5, EVENT_S + 2 * FIRST_S),
)


class Handling(msgspec.Struct, frozen=True):
    """How a new instance is treated."""

    title: str
    policy: str
    preload: bool


JOINING = (
    Handling("nothing", PLAIN, False),
    Handling("preloading alone", PLAIN, True),
    Handling("cold start", f"{PLAIN}:cold_start=1", False),
    Handling("cold start and preloading", f"{PLAIN}:cold_start=1", True),
    Handling(
        "gentle cold start and preloading",
        f"{PLAIN}:cold_start.bs_floor_share=0.5:cold_start.bs_cap_share=1",
        True,
    ),
)
RESTARTING = (JOINING[0], JOINING[3], JOINING[4])
PREFIXES = (0, 4, 8, 16, 32)
"""How many prefixes an instance that joins is sent, with the last handling; 0: none."""
