"""A data plane with its event follower in this process, in front of simulated engines that publish KV events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from router.core.hardware_profiles import A100_80G
from router.engine.instance import EngineInstance
from router.engine.kv_publisher import EventEndpoints
from router.engine.models import ServedModels
from router.engine.options import EngineOptions
from router.proxy.events.following import EventFollower
from router.proxy.poller import LoadPoller
from router.proxy.worker import SystemClock
from router.snapshot import Residency
from tests.fakes.step_clock import VirtualClock
from tests.router.engine.serving import HOST, until
from tests.router.proxy.harness import MODEL, Proxy, proxying

SMALL = msgspec.structs.replace(A100_80G, kv_capacity_tokens=4096)
"""Small enough that conversations evict each other."""


@dataclass
class Peer:
    """What the proxy's harness needs to know of an engine."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


@dataclass
class Stage:
    """Proxy, follower and engines."""

    proxy: Proxy
    events: EventFollower
    engines: list[EngineInstance]
    poller: "asyncio.Task[None]"
    """Polls the engines; a test that polls by itself cancels it."""

    def standing(self, number: int) -> tuple[Residency, str]:
        """How the residency of an instance is known, and why."""
        standing = self.events.standing(self.proxy.plane.links[number])
        return standing.residency, standing.reason

    async def exact(self, number: int) -> None:
        """Wait until an instance is believed and everything is told."""
        link = self.proxy.plane.links[number]
        rank = self.engines[number].ranks[0]

        def is_exact() -> bool:
            status = self.events.status(link)
            return (
                self.standing(number)[0] is Residency.EVENTS
                and status is not None
                and status.told
                and status.next_number == rank.published
            )

        await until(is_exact)

    async def settled(self) -> None:
        """Wait until every event is applied and every lesson is learnt."""
        await self.events.learner.drained()
        for number in range(len(self.engines)):
            await self.exact(number)

    def predicted(self) -> tuple[int, bool, int]:
        """What was predicted for the newest decision: tokens, whether exactly, and at which slot."""
        newest = self.proxy.plane.recent.newest()
        assert newest is not None
        chosen = newest.decision.chosen
        assert chosen is not None
        return chosen.hit_tokens, chosen.exact, chosen.view.slot


def options(**changes: Any) -> EngineOptions:
    """Options of a small engine that publishes on free ports."""
    defaults: dict[str, Any] = {
        "profile": SMALL,
        "models": ServedModels((MODEL,), (), 4096),
        "events": EventEndpoints("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv"),
    }
    return EngineOptions(**{**defaults, **changes})


@asynccontextmanager
async def engine(port: int = 0, **changes: Any) -> AsyncIterator[EngineInstance]:
    """Run one engine."""
    instance = EngineInstance(options(**changes), VirtualClock())
    await instance.start(HOST, port)
    try:
        yield instance
    finally:
        await instance.stop()


@asynccontextmanager
async def staged(*engines: EngineInstance, **changes: Any) -> AsyncIterator[Stage]:
    """Run a data plane in front of engines that run already."""
    async with AsyncExitStack() as stack:
        peers: Any = [Peer(each.port) for each in engines]
        proxy = await stack.enter_async_context(proxying(*peers, **changes))
        follower = EventFollower(proxy.plane, SystemClock())
        following = asyncio.create_task(follower.run())
        poller = asyncio.create_task(LoadPoller(proxy.plane, Random(1), every_s=0.05).run())
        tasks = [following, poller]
        try:
            yield Stage(proxy, follower, list(engines), poller)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
