"""Finding an engine's event sources from its one address: vLLM's ``/kv_event_sources``, SGLang's ``/server_info``.

Pure: bodies in, sources out; whoever calls fetches. Addresses in them are as the engine sees itself, so a wildcard
host is replaced by the host that the engine was reached at.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from router.kvevents.errors import DiscoveryError
from router.kvevents.source import EventSource, LoadSource
from router.unreadable import UNREADABLE

VLLM_PATH = "/kv_event_sources"
SGLANG_PATH = "/server_info"
MAX_RANKS = 1024
_WILDCARDS = frozenset({"*", "0.0.0.0", "::", "[::]"})


class _VllmSource(msgspec.Struct):
    endpoint: str
    replay_endpoint: str | None = None
    topic: str = ""
    data_parallel_rank: int | None = None


class _VllmSources(msgspec.Struct):
    sources: list[_VllmSource]


_VllmRanks = dict[str, _VllmSource]
"""What vLLM 0.32 answers: the number of each data-parallel rank, and its configuration as resolved."""


class _SglangEvents(msgspec.Struct):
    publisher: str
    endpoint_port_base: int
    endpoint_host: str = "*"
    topic: str = ""
    block_size: int | None = None
    dp_size: int = 1
    load_endpoint_port_base: int | None = None
    load_topic: str = "load"


class _SglangConfig(msgspec.Struct):
    """What the operator configured; SGLang repeats it as an object or as the text of one."""

    replay_endpoint: str | None = None


class _SglangInfo(msgspec.Struct):
    kv_events: _SglangEvents | None = None
    kv_events_config: _SglangConfig | str | None = None

    @property
    def replay_endpoint(self) -> str | None:
        """The replay endpoint of rank 0."""
        config = self.kv_events_config
        if isinstance(config, str):
            config = msgspec.json.decode(config, type=_SglangConfig) if config else None
        return None if config is None else config.replay_endpoint


def vllm_sources(body: bytes, engine_url: str) -> list[EventSource]:
    """Read ``/kv_event_sources``: an object by rank (0.32), a list, or an object with ``sources`` (other versions).

    :raises DiscoveryError: when it is none of them.
    """
    try:
        listed = _vllm_listed(body)
    except (*UNREADABLE, ValueError) as error:
        raise DiscoveryError(f"{VLLM_PATH} has no sources: {error}") from error
    return [
        EventSource(
            events=reachable(each.endpoint, engine_url),
            replay=None if each.replay_endpoint is None else reachable(each.replay_endpoint, engine_url),
            topic=each.topic,
            rank=rank,
        )
        for rank, each in sorted(listed.items())
    ]


def _vllm_listed(body: bytes) -> dict[int, _VllmSource]:
    """Return the sources by rank, whichever shape they have."""
    if body.lstrip()[:1] == b"[":
        listed = msgspec.json.decode(body, type=list[_VllmSource])
    elif b'"sources"' in body:
        listed = msgspec.json.decode(body, type=_VllmSources).sources
    else:
        return {int(rank): source for rank, source in msgspec.json.decode(body, type=_VllmRanks).items()}
    return {each.data_parallel_rank or 0: each for each in listed}


def sglang_sources(body: bytes, engine_url: str) -> list[EventSource]:
    """Read ``/server_info``; no source where events are not published.

    :raises DiscoveryError: when it does not describe its events as SGLang does.
    """
    try:
        info = msgspec.json.decode(body, type=_SglangInfo)
        events, replay = info.kv_events, info.replay_endpoint
    except UNREADABLE as error:
        raise DiscoveryError(f"{SGLANG_PATH} does not describe KV events: {error}") from error
    if events is None or events.publisher != "zmq":
        return []
    first = EventSource(
        events=reachable(f"tcp://{events.endpoint_host}:{events.endpoint_port_base}", engine_url),
        replay=None if replay is None else reachable(replay, engine_url),
        topic=events.topic,
        block_tokens=events.block_size,
    )
    return ranked(first, events.dp_size)


def sglang_load_sources(body: bytes, engine_url: str) -> list[LoadSource]:
    """Read where ``/server_info`` says that load is pushed, one source a rank; none where it is not.

    :raises DiscoveryError: when it makes no sense.
    """
    try:
        events = msgspec.json.decode(body, type=_SglangInfo).kv_events
    except UNREADABLE as error:
        raise DiscoveryError(f"{SGLANG_PATH} does not describe load: {error}") from error
    if events is None or events.load_endpoint_port_base is None:
        return []
    first = EventSource(reachable(f"tcp://{events.endpoint_host}:{events.load_endpoint_port_base}", engine_url))
    return [LoadSource(each.events, events.load_topic, each.rank) for each in ranked(first, events.dp_size)]


def reachable(endpoint: str, engine_url: str) -> str:
    """Return an endpoint as it can be connected to: wildcards become the host of ``engine_url``.

    :raises DiscoveryError: when it is no TCP endpoint with a port.
    """
    try:
        parts = urlsplit(endpoint.replace("://*", "://0.0.0.0", 1).replace("://:::", "://[::]:", 1))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise DiscoveryError(f"{endpoint!r} is no endpoint: {error}") from error
    if parts.scheme != "tcp" or not host or not port:
        raise DiscoveryError(f"{endpoint!r} is no TCP endpoint that another machine could reach")
    if host in _WILDCARDS:
        host = _host_of(engine_url)
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def ranked(source: EventSource, ranks: int) -> list[EventSource]:
    """Return the sources of all data-parallel ranks, given that of rank 0: ports count up by rank.

    :raises DiscoveryError: when there cannot be so many, or the ports would leave the range of ports.
    """
    if not 1 <= ranks <= MAX_RANKS:
        raise DiscoveryError(f"{ranks} data-parallel ranks cannot be")
    return [
        EventSource(
            events=_shifted(source.events, rank),
            replay=None if source.replay is None else _shifted(source.replay, rank),
            topic=source.topic,
            rank=rank,
            direction=source.direction,
            block_tokens=source.block_tokens,
        )
        for rank in range(ranks)
    ]


def _shifted(endpoint: str, rank: int) -> str:
    head, _, port = endpoint.rpartition(":")
    if not port.isdecimal() or not 1 <= int(port) + rank <= 65_535:
        raise DiscoveryError(f"{endpoint!r} has no port for rank {rank}")
    return f"{head}:{int(port) + rank}"


def _host_of(url: str) -> str:
    host = urlsplit(url).hostname
    if not host:
        raise DiscoveryError(f"{url!r} names no host")
    return host


Answers = Mapping[str, tuple[int, bytes]]
"""Path -> (status, body) of what an engine answered."""


def discover(answers: Answers, engine_url: str) -> list[EventSource]:
    """Read whichever of :data:`VLLM_PATH` and :data:`SGLANG_PATH` an engine answered with 200; vLLM's comes first.

    :raises DiscoveryError: when an answer makes no sense.
    """
    readers: dict[str, Any] = {VLLM_PATH: vllm_sources, SGLANG_PATH: sglang_sources}
    for path, read in readers.items():
        status, body = answers.get(path, (404, b""))
        if status == 200:
            sources: list[EventSource] = read(body, engine_url)
            if sources:
                return sources
    return []
