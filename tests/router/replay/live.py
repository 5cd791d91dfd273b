"""A trace through a live data plane over simulated engines, with real sockets, in time that only waiting takes."""

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import msgspec

from router.core.hardware_profiles import HARDWARE_PROFILES
from router.engine.instance import EngineInstance
from router.engine.models import ServedModels
from router.engine.options import EngineOptions
from router.proxy.poller import LoadPoller
from router.replay.call import BodyWriter
from router.replay.client import HttpClient, Target
from router.replay.player import Pace, Player
from router.replay.report import Report, report_of
from router.replay.tally import Tally
from router.replay.trace_source import TraceSource
from router.sim.traces.record import Trace
from tests.fakes.idle_time import IdleClock, in_idle_time
from tests.router.proxy.harness import MODEL, proxying

HOST = "127.0.0.1"
CONTEXT_TOKENS = 131_072


class Peer(msgspec.Struct, frozen=True):
    """What the proxy's harness needs to know of an engine."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


@in_idle_time
async def replayed(trace: Trace, *, engines: int, profile: str) -> Report:
    """Play a trace through a worker that polls its engines, as it does by default; return what clients saw."""
    loop = asyncio.get_running_loop()
    options = EngineOptions(
        profile=HARDWARE_PROFILES[profile], models=ServedModels((MODEL,), (), CONTEXT_TOKENS), hash_seed=1
    )
    async with AsyncExitStack() as stack:
        peers: list[Any] = []
        for _ in range(engines):
            engine = EngineInstance(options, IdleClock())
            await engine.start(HOST, 0)
            stack.push_async_callback(engine.stop)
            peers.append(Peer(engine.port))
        proxy = await stack.enter_async_context(proxying(*peers))
        poller = asyncio.create_task(LoadPoller(proxy.plane, Random(1)).run())
        stack.callback(poller.cancel)
        client = HttpClient(Target.parse(f"http://{HOST}:{proxy.port}"), {})
        stack.callback(client.close)
        writer, tally = BodyWriter(MODEL, chat=True, max_output=None), Tally()
        player = Player(TraceSource(lambda _: trace, writer), client, writer.path, Pace(), loop.time, tally)
        await player.play()
        return report_of(tally, loop.time())
