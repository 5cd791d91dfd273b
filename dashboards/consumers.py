"""The socket behind the live page."""

import asyncio
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import QueryDict

from controlplane.telemetry.hub import hub
from controlplane.telemetry.selection import Selection

UNAUTHENTICATED = 4401
"""Close code for a socket without a signed-in person; a browser shows the sign-in page then."""


class ScoresConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Sends the newest frame of what the address selects, whenever there is one and the browser has taken the last."""

    _pump: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept a signed-in person; anyone else is told so by a close code, which a refused handshake could not."""
        await self.accept()
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(code=UNAUTHENTICATED)
            return
        self._pump = asyncio.create_task(self._send_frames(), name="scores-pump")

    async def disconnect(self, code: int) -> None:
        """Give the slot up."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Take nothing: this socket only sends."""

    async def _send_frames(self) -> None:
        with hub().feeds.of(self._selection()).subscribe() as slot:
            while True:
                await self.send(text_data=await slot.take())

    def _selection(self) -> Selection:
        query = QueryDict(self.scope.get("query_string", b""))
        return Selection.of(model=query.get("model"), workload=query.get("workload"))

    scope: dict[str, Any]
