"""The beginning and the end of the web process: sharing with the others starts before, and rows are written after,
everything that is served.

A server that does not speak ASGI's lifespan protocol begins with the first connection, and its last seconds of
telemetry and usage are lost.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from controlplane.bridge.views import RouterSnapshots
from controlplane.telemetry.ingest import write_rest
from controlplane.telemetry.sharing.process import sharing

logger = logging.getLogger(__name__)
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
END_S = 4.0
"""How long the last rows may take."""


class Lifespan:
    """Wraps the application of the process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._began: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or the protocol of beginning and ending."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._began is None or not self._began.done():
            await asyncio.shield(self._begin())
        await self._application(scope, receive, send)

    def _begin(self) -> "asyncio.Task[None]":
        if self._began is None:
            self._began = asyncio.create_task(sharing().start(), name="begin")
        return self._began

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._begin()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            async with asyncio.timeout(END_S):
                await end()
        except Exception:  # the process ends all the same
            logger.exception("could not write the last rows of telemetry and usage")
        self._began = None
        await send({"type": "lifespan.shutdown.complete"})


async def end() -> None:
    """Write everything that is held for later, and leave the others."""
    try:
        await write_rest()
        for book in RouterSnapshots.books:
            await book.write()
    finally:
        await sharing().stop()
