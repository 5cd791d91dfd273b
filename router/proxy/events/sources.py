"""Asking an engine, at its one address, where it publishes KV events and load."""

from collections.abc import Awaitable, Callable

import msgspec

from router.config import InstanceConfig, KvEventsConfig
from router.kvevents.discovery import SGLANG_PATH, VLLM_PATH, discover, ranked, sglang_load_sources
from router.kvevents.errors import DiscoveryError
from router.kvevents.source import EventSource, LoadSource
from router.proxy.fetch import Fetched

Ask = Callable[[bytes], Awaitable[Fetched]]
"""Gets a path of the engine."""

NOT_TOLD = "the engine does not tell where it publishes KV events; they can be configured"
NOT_PUBLISHED = "the engine publishes no KV events"


class Sources(msgspec.Struct, frozen=True):
    """Where one instance publishes; ``reason`` says why there is no event source, where there is none."""

    events: tuple[EventSource, ...] = ()
    loads: tuple[LoadSource, ...] = ()
    reason: str = ""


async def find_sources(ask: Ask, config: InstanceConfig) -> Sources:
    """Ask for the sources of an instance, of its rank alone where it is one; what is configured goes first.

    :raises FetchFailed: when the engine does not answer.
    """
    found = await _find_sources(ask, config)
    rank = config.rank
    if rank is None:
        return found
    events = tuple(source for source in found.events if source.rank == rank)
    loads = tuple(source for source in found.loads if source.rank == rank)
    reason = found.reason or ("" if events else f"the engine names no source of data-parallel rank {rank}")
    return Sources(events, loads, reason)


async def _find_sources(ask: Ask, config: InstanceConfig) -> Sources:
    answers = {path: await ask(path.encode()) for path in (VLLM_PATH, SGLANG_PATH)}
    told = {path: (answer.status, answer.body) for path, answer in answers.items()}
    try:
        status, body = told[SGLANG_PATH]
        loads = tuple(sglang_load_sources(body, config.url)) if status == 200 else ()
        if config.kv_events is not None:
            return Sources(tuple(ranked(_configured(config.kv_events), (config.rank or 0) + 1)), loads)
        events = tuple(discover(told, config.url))
    except DiscoveryError as error:
        return Sources(reason=str(error))
    if events:
        return Sources(events, loads)
    silent = all(answer.status != 200 for answer in answers.values())
    return Sources((), loads, NOT_TOLD if silent else NOT_PUBLISHED)


def _configured(events: KvEventsConfig) -> EventSource:
    return EventSource(events=events.endpoint, replay=events.replay, topic=events.topic, direction=events.direction)
