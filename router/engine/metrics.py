"""The engine's ``/metrics``: the names, labels and buckets of vLLM 0.32, and only those that a reader of load needs.

Counters are plain numbers, added to by whoever sees the event; gauges are read from the model when asked.
Durations are in seconds of the clock that clients live by (a sped-up engine reports its sped-up latencies).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
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

    def samples(self, name: str, engine: str, model: str) -> Iterator[str]:
        """Yield the exposition lines under two labels, between which the bucket's bound stands."""
        running = list(accumulate(self.counts))
        for bound, count in zip((*map(str, self.bounds), "+Inf"), running, strict=True):
            yield f'{name}_bucket{{{engine},le="{bound}",{model}}} {float(count)}'
        yield f"{name}_count{{{engine},{model}}} {float(running[-1])}"
        yield f"{name}_sum{{{engine},{model}}} {self.total}"


@dataclass(slots=True)
class EngineCounters:
    """What one engine has done since it started."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: dict[FinishReason, int] = field(default_factory=lambda: dict.fromkeys(FinishReason, 0))
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
    lag_s: float


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """The numbers of one data-parallel rank; an engine without ranks has rank 0 alone."""

    rank: int
    counters: EngineCounters
    gauges: EngineGauges


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """The numbers of one server: its ranks, and what they share."""

    model: str
    start_unix_s: float
    rejected: int
    ranks: tuple[RankMetrics, ...]


Value = Callable[[RankMetrics], float]

_VALUES: tuple[tuple[str, str, str, Value], ...] = (
    (
        "vllm:num_requests_running",
        "gauge",
        "Number of requests in model execution batches.",
        lambda rank: rank.gauges.running,
    ),
    (
        "vllm:num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        lambda rank: rank.gauges.waiting,
    ),
    (
        "vllm:kv_cache_usage_perc",
        "gauge",
        "KV-cache usage. 1 means 100 percent usage.",
        lambda rank: rank.gauges.kv_use,
    ),
    (
        "pointsman:engine_lag_seconds",
        "gauge",
        "How far the simulated steps are behind the model's schedule.",
        lambda rank: rank.gauges.lag_s,
    ),
    (
        "vllm:prefix_cache_queries_total",
        "counter",
        "Prefix cache queries, in terms of number of queried tokens.",
        lambda rank: rank.gauges.prefix_queries,
    ),
    (
        "vllm:prefix_cache_hits_total",
        "counter",
        "Prefix cache hits, in terms of number of cached tokens.",
        lambda rank: rank.gauges.prefix_hits,
    ),
    (
        "vllm:num_preemptions_total",
        "counter",
        "Cumulative number of preemption from the engine.",
        lambda rank: rank.gauges.preemptions,
    ),
    (
        "vllm:prompt_tokens_total",
        "counter",
        "Number of prefill tokens processed.",
        lambda rank: rank.counters.prompt_tokens,
    ),
    (
        "vllm:generation_tokens_total",
        "counter",
        "Number of generation tokens processed.",
        lambda rank: rank.counters.generation_tokens,
    ),
)
"""Metrics with one value a rank: name, kind, help, value."""

_HISTOGRAMS: tuple[tuple[str, str, Callable[[EngineCounters], Histogram]], ...] = (
    (
        "vllm:time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        lambda counters: counters.ttft_s,
    ),
    (
        "vllm:inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        lambda counters: counters.inter_token_s,
    ),
    (
        "vllm:e2e_request_latency_seconds",
        "Histogram of e2e request latency in seconds.",
        lambda counters: counters.e2e_s,
    ),
    (
        "vllm:request_prompt_tokens",
        "Number of prefill tokens processed.",
        lambda counters: counters.request_prompt_tokens,
    ),
    (
        "vllm:request_generation_tokens",
        "Number of generation tokens processed.",
        lambda counters: counters.request_generation_tokens,
    ),
)


def exposition(server: ServerMetrics) -> bytes:
    """Return the Prometheus text of one server."""
    model = f'model_name="{server.model}"'
    lines = [*_server_lines(server, model)]
    for name, kind, help_text, value in _VALUES:
        lines += _head(name, kind, help_text)
        lines += (f"{name}{{{_engine(rank)},{model}}} {float(value(rank))}" for rank in server.ranks)
    for name, help_text, histogram in _HISTOGRAMS:
        lines += _head(name, "histogram", help_text)
        for rank in server.ranks:
            lines += histogram(rank.counters).samples(name, _engine(rank), model)
    return ("\n".join(lines) + "\n").encode()


def _server_lines(server: ServerMetrics, model: str) -> Iterator[str]:
    start = "process_start_time_seconds"
    yield from _head(start, "gauge", "Start time of the process since unix epoch in seconds.")
    yield f"{start} {server.start_unix_s}"
    rejections = "vllm:admission_rejections_total"
    yield from _head(rejections, "counter", "Number of admission attempts rejected by a queue limit, by reason.")
    yield f'{rejections}{{{model},reason="max_num_queued_reqs"}} {float(server.rejected)}'
    yield from _head("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
    for rank in server.ranks:
        yield f"vllm:cache_config_info{{{_cache_config(rank)}}} 1.0"
    yield from _head("vllm:request_success_total", "counter", "Count of successfully processed requests.")
    for reason in FinishReason:
        for rank in server.ranks:
            labels = f'{_engine(rank)},finished_reason="{reason.value}",{model}'
            yield f"vllm:request_success_total{{{labels}}} {float(rank.counters.finished[reason])}"


def _cache_config(rank: RankMetrics) -> str:
    gauges = rank.gauges
    size = f'kv_cache_size_tokens="{gauges.kv_blocks * gauges.block_tokens}",num_gpu_blocks="{gauges.kv_blocks}"'
    return f'block_size="{gauges.block_tokens}",enable_prefix_caching="True",{_engine(rank)},{size}'


def _engine(rank: RankMetrics) -> str:
    return f'engine="{rank.rank}"'


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"
