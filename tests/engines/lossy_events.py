"""Stands between an engine's KV events and their reader, and loses messages when it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import zmq
import zmq.asyncio

from tests.ports import free_ports


class LossyEvents:
    """Passes messages on from ``source``; the next ``to_lose`` of them are lost."""

    def __init__(self, source: str) -> None:
        self.endpoint = f"tcp://127.0.0.1:{free_ports(1)}"
        self.to_lose = 0
        self.lost = 0
        self._source = source

    async def pass_on(self, context: "zmq.asyncio.Context") -> None:
        """Pass messages on for ever."""
        read, told = context.socket(zmq.SUB), context.socket(zmq.PUB)
        with read, told:
            read.setsockopt(zmq.SUBSCRIBE, b"")
            read.connect(self._source)
            told.bind(self.endpoint)
            while True:
                message = await read.recv_multipart()
                if self.to_lose:
                    self.to_lose -= 1
                    self.lost += 1
                else:
                    await told.send_multipart(message)


@asynccontextmanager
async def lossy_events(source: str) -> AsyncIterator[LossyEvents]:
    """Run one."""
    context = zmq.asyncio.Context()
    lossy = LossyEvents(source)
    task = asyncio.create_task(lossy.pass_on(context))
    try:
        yield lossy
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        context.destroy(linger=0)
