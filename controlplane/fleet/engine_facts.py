"""What an engine's own pages say about it: pure readers of models, metrics and KV-event sources."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_VLLM_RANK = re.compile(r'^vllm:num_requests_running\{(?:[^}]*,)?engine="([0-9]{1,4})"')
_SGLANG_RANK = re.compile(r'^sglang:num_running_reqs\{(?:[^}]*,)?dp_rank="([0-9]{1,4})"')
_ENDPOINT = re.compile(r"^(tcp|ipc|inproc)://")
_MAX_MODELS = 1_000
MOST_TOKENS = 2**31 - 1
"""In one KV cache or block; what says more is not believed."""
_MAX_ENDPOINTS = 256


class UnreadableFacts(ValueError):
    """A page that is not what its address promises; the message is for people."""


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What `/metrics` says; None where it does not."""

    engine: str | None = None
    kv_block_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    process_started_unix_s: float | None = None
    ranks: int | None = None
    """Data-parallel ranks that have series of their own, numbered from 0."""


def read_models(body: bytes) -> tuple[str, ...]:
    """Return the model names of an OpenAI model list, adapters included.

    :raises UnreadableFacts: when it is none.
    """
    listing = _json(body)
    data = listing.get("data") if isinstance(listing, Mapping) else None
    if not isinstance(data, list):
        raise UnreadableFacts("the answer is not an OpenAI model list (it has no `data`)")
    names = [entry.get("id") for entry in data if isinstance(entry, Mapping)]
    found = tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))
    if not found:
        raise UnreadableFacts("the model list is empty")
    if len(found) > _MAX_MODELS:
        raise UnreadableFacts(f"the model list has {len(found)} names, more than {_MAX_MODELS}")
    return found


def read_metrics(text: str) -> MetricFacts:
    """Return what Prometheus text says about engine, KV cache and process; only the lines needed are parsed."""
    engine = block = capacity = started = None
    ranks: set[int] = set()
    for line in text.splitlines():
        if line.startswith("vllm:"):
            engine = "vllm"
            ranks.update(_ranks(_VLLM_RANK, line))
            if line.startswith("vllm:cache_config_info{"):
                labels = dict(_LABEL.findall(line))
                block = _whole(labels.get("block_size"))
                capacity = _capacity(labels, block)
        elif line.startswith("sglang:"):
            engine = "sglang"
            ranks.update(_ranks(_SGLANG_RANK, line))
            if line.startswith("sglang:max_total_num_tokens"):
                capacity = _whole(line.rpartition(" ")[2])
        elif line.startswith("process_start_time_seconds "):
            started = _number(line.rpartition(" ")[2])
    # A server of a single rank of many tells only that one, and routes nothing to the others.
    count = len(ranks) if ranks == set(range(len(ranks))) and ranks else None
    return MetricFacts(engine, block, capacity, started, count)


def read_event_endpoints(body: bytes) -> tuple[str, ...]:
    """Return every ZMQ endpoint that a JSON page names under a key about KV events, in order.

    :raises UnreadableFacts: when it is not JSON.
    """
    return tuple(dict.fromkeys(_endpoints(_json(body))))[:_MAX_ENDPOINTS]


def _endpoints(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _ENDPOINT.match(value):
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _endpoints(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _endpoints(inner)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableFacts("the answer is not JSON") from error


def _capacity(labels: Mapping[str, str], block: int | None) -> int | None:
    total = _whole(labels.get("kv_cache_size_tokens"))
    blocks = _whole(labels.get("num_gpu_blocks"))
    if total is not None:
        return total
    return None if blocks is None or block is None or blocks * block > MOST_TOKENS else blocks * block


def _ranks(series: re.Pattern[str], line: str) -> list[int]:
    found = series.match(line)
    return [int(found[1])] if found else []


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return int(number) if number is not None and 1 <= number <= MOST_TOKENS else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) else None
