"""Reads an engine's Prometheus text: only the lines that matter, under any of the names they have had.

What is missing or was renamed is None, never 0: silence is not idleness.
"""

import re

import msgspec

from router.state.report import EngineReport


class EngineReading(msgspec.Struct, frozen=True, kw_only=True):
    """One scrape: the report for the fleet, and what tells a restart."""

    report: EngineReport
    started_unix_s: float | None
    """When the engine's process started, by its own account."""
    served_tokens: float | None
    """A counter that only ever grows while the process lives."""
    cache_resets: float
    """How often its prefix cache was reset from outside, where it counts its own HTTP requests (vLLM)."""
    missing: tuple[str, ...]
    """What a load report needs and this scrape does not have."""


_WANTED = (
    b"vllm:num_requests_running",
    b"vllm:num_requests_waiting",
    b"vllm:kv_cache_usage_perc",
    b"vllm:gpu_cache_usage_perc",
    b"vllm:cache_config_info",
    b"vllm:prompt_tokens_total",
    b"sglang:num_running_reqs",
    b"sglang:num_queue_reqs",
    b"sglang:token_usage",
    b"sglang:max_total_num_tokens",
    b"sglang:prompt_tokens_total",
    b"llamacpp:requests_processing",
    b"llamacpp:requests_deferred",
    b"llamacpp:kv_cache_usage_ratio",
    b"llamacpp:prompt_tokens_total",
    b"process_start_time_seconds",
    b"http_requests_total",
)
_LINE = re.compile(rb"^(" + b"|".join(map(re.escape, _WANTED)) + rb")(\{[^\n]*\})? ([^\s]+)(?: [0-9]+)?$", re.MULTILINE)
_RESET = b'handler="/reset_prefix_cache"'
_SUCCESS = b'status="2xx"'
_LABEL = re.compile(rb'(block_size|num_gpu_blocks)="([0-9]{1,12})"')
_RANK = re.compile(rb'[{,](?:engine|dp_rank)="([0-9]{1,6})"')
"""What tells the series of data-parallel ranks apart: vLLM's name for it, and SGLang's."""


_MOST = 1e15
"""A larger number counts nothing that an engine has, and sums of such numbers are no numbers."""


def read_metrics(text: bytes, rank: int | None = None) -> EngineReading:
    """Read one scrape; several models of one engine are added up, and its ranks, unless one ``rank`` is asked for.

    Series that name no rank are of all of them.
    """
    values: dict[bytes, list[float]] = {}
    info: dict[bytes, int] = {}
    cache_resets = 0.0
    for match in _LINE.finditer(text):
        name, labels, number = match[1], match[2] or b"", match[3]
        if rank is not None and (named := _RANK.search(labels)) is not None and int(named[1]) != rank:
            continue
        if name == b"vllm:cache_config_info":
            info.update((label, int(value)) for label, value in _LABEL.findall(labels))
        elif name == b"http_requests_total":
            cache_resets += (_number(number) or 0.0) if _SUCCESS in labels.partition(_RESET)[2] else 0.0
        elif (value := _number(number)) is not None:
            values.setdefault(name, []).append(value)
    running = _sum(values, b"vllm:num_requests_running", b"sglang:num_running_reqs", b"llamacpp:requests_processing")
    waiting = _sum(values, b"vllm:num_requests_waiting", b"sglang:num_queue_reqs", b"llamacpp:requests_deferred")
    kv_use = _most(
        values,
        b"vllm:kv_cache_usage_perc",
        b"vllm:gpu_cache_usage_perc",
        b"sglang:token_usage",
        b"llamacpp:kv_cache_usage_ratio",
    )
    report = EngineReport(
        running=None if running is None else int(running),
        waiting=None if waiting is None else int(waiting),
        kv_use=kv_use,
        kv_block_tokens=info.get(b"block_size"),
        kv_capacity_tokens=_capacity(values, info),
    )
    missing = tuple(name for name in ("running", "waiting", "kv_use") if getattr(report, name) is None)
    started = values.get(b"process_start_time_seconds")
    served = _sum(values, b"vllm:prompt_tokens_total", b"sglang:prompt_tokens_total", b"llamacpp:prompt_tokens_total")
    return EngineReading(
        report=report,
        started_unix_s=None if started is None else max(started),
        served_tokens=served,
        cache_resets=cache_resets,
        missing=missing,
    )


def restarted(before: EngineReading, after: EngineReading) -> bool:
    """Tell whether the process behind the two readings is another one."""
    if before.started_unix_s is not None and after.started_unix_s is not None:
        return after.started_unix_s != before.started_unix_s
    if before.served_tokens is not None and after.served_tokens is not None:
        return after.served_tokens < before.served_tokens
    return False


def _number(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None


def _sum(values: dict[bytes, list[float]], *names: bytes) -> float | None:
    return next((sum(values[name]) for name in names if name in values), None)


def _most(values: dict[bytes, list[float]], *names: bytes) -> float | None:
    return next((min(1.0, max(values[name])) for name in names if name in values), None)


def _capacity(values: dict[bytes, list[float]], info: dict[bytes, int]) -> int | None:
    if b"block_size" in info and b"num_gpu_blocks" in info:
        tokens = info[b"block_size"] * info[b"num_gpu_blocks"]
    else:
        tokens = int(sum(values.get(b"sglang:max_total_num_tokens", [])))
    return tokens or None
