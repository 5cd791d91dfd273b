"""The engine's ``/metrics``: the names, labels and buckets of vLLM 0.32, and only those that a reader of load needs.

Counters are plain numbers, added to by whoever sees the event; gauges are read from the model when asked.
Durations are in seconds of the clock that clients live by (a sped-up engine reports its sped-up latencies).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from router.engine.generation import FinishReason

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

_TTFT = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
_ITL = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_E2E = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
_TOKENS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
)  # fmt: skip


class Histogram:
    """Counts of observations at or below each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(float(bound) for bound in bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self, name: str, labels: str) -> Iterator[str]:
        """Yield the exposition lines."""
        running = list(accumulate(self.counts))
        engine, model = labels.split(",", 1)
        for bound, count in zip((*map(str, self.bounds), "+Inf"), running, strict=True):
            yield f'{name}_bucket{{{engine},le="{bound}",{model}}} {float(count)}'
        yield f"{name}_count{{{labels}}} {float(running[-1])}"
        yield f"{name}_sum{{{labels}}} {self.total}"


@dataclass(slots=True)
class EngineCounters:
    """What one engine has done since it started."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: dict[FinishReason, int] = field(default_factory=lambda: dict.fromkeys(FinishReason, 0))
    rejected: int = 0
    ttft_s: Histogram = field(default_factory=lambda: Histogram(_TTFT))
    inter_token_s: Histogram = field(default_factory=lambda: Histogram(_ITL))
    e2e_s: Histogram = field(default_factory=lambda: Histogram(_E2E))
    request_prompt_tokens: Histogram = field(default_factory=lambda: Histogram(_TOKENS))
    request_generation_tokens: Histogram = field(default_factory=lambda: Histogram(_TOKENS))


@dataclass(frozen=True, slots=True)
class EngineGauges:
    """What one engine is doing now; ``lag_s`` is how far its steps are behind the model's schedule."""

    running: int
    waiting: int
    kv_use: float
    preemptions: int
    prefix_queries: int
    prefix_hits: int
    block_tokens: int
    kv_blocks: int
    start_unix_s: float
    lag_s: float


def exposition(model: str, counters: EngineCounters, gauges: EngineGauges) -> bytes:
    """Return the Prometheus text of one engine."""
    labels = f'engine="0",model_name="{model}"'
    lines = [*_gauge_lines(gauges, labels), *_counter_lines(counters, gauges, labels)]
    for name, help_text, histogram in _histograms(counters):
        lines += (*_head(name, "histogram", help_text), *histogram.samples(name, labels))
    return ("\n".join(lines) + "\n").encode()


def _gauge_lines(gauges: EngineGauges, labels: str) -> Iterator[str]:
    start = "process_start_time_seconds"
    yield from _head(start, "gauge", "Start time of the process since unix epoch in seconds.")
    yield f"{start} {gauges.start_unix_s}"
    for name, help_text, value in (
        ("vllm:num_requests_running", "Number of requests in model execution batches.", float(gauges.running)),
        ("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float(gauges.waiting)),
        ("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", gauges.kv_use),
        ("pointsman:engine_lag_seconds", "How far the simulated steps are behind the model's schedule.", gauges.lag_s),
    ):
        yield from _head(name, "gauge", help_text)
        yield f"{name}{{{labels}}} {value}"
    yield from _head("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
    size = f'kv_cache_size_tokens="{gauges.kv_blocks * gauges.block_tokens}",num_gpu_blocks="{gauges.kv_blocks}"'
    caching = f'block_size="{gauges.block_tokens}",enable_prefix_caching="True",engine="0",{size}'
    yield f"vllm:cache_config_info{{{caching}}} 1.0"


def _counter_lines(counters: EngineCounters, gauges: EngineGauges, labels: str) -> Iterator[str]:
    for name, help_text, value in (
        (
            "vllm:prefix_cache_queries_total",
            "Prefix cache queries, in terms of number of queried tokens.",
            gauges.prefix_queries,
        ),
        (
            "vllm:prefix_cache_hits_total",
            "Prefix cache hits, in terms of number of cached tokens.",
            gauges.prefix_hits,
        ),
        (
            "vllm:num_preemptions_total",
            "Cumulative number of preemption from the engine.",
            gauges.preemptions,
        ),
        ("vllm:prompt_tokens_total", "Number of prefill tokens processed.", counters.prompt_tokens),
        ("vllm:generation_tokens_total", "Number of generation tokens processed.", counters.generation_tokens),
    ):
        yield from _head(name, "counter", help_text)
        yield f"{name}{{{labels}}} {float(value)}"
    yield from _head("vllm:request_success_total", "counter", "Count of successfully processed requests.")
    engine, model = labels.split(",", 1)
    for reason, count in counters.finished.items():
        yield f'vllm:request_success_total{{{engine},finished_reason="{reason.value}",{model}}} {float(count)}'
    rejections = "vllm:admission_rejections_total"
    yield from _head(rejections, "counter", "Number of admission attempts rejected by a queue limit, by reason.")
    yield f'{rejections}{{{model},reason="max_num_queued_reqs"}} {float(counters.rejected)}'


def _histograms(counters: EngineCounters) -> Iterator[tuple[str, str, Histogram]]:
    yield (
        "vllm:time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        counters.ttft_s,
    )
    yield (
        "vllm:inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        counters.inter_token_s,
    )
    yield (
        "vllm:e2e_request_latency_seconds",
        "Histogram of e2e request latency in seconds.",
        counters.e2e_s,
    )
    yield (
        "vllm:request_prompt_tokens",
        "Number of prefill tokens processed.",
        counters.request_prompt_tokens,
    )
    yield (
        "vllm:request_generation_tokens",
        "Number of generation tokens processed.",
        counters.request_generation_tokens,
    )


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"
