"""Subscriptions to pushed load: one task a source, the newest message wins."""

import asyncio
from typing import Protocol

import zmq
import zmq.asyncio

from router.kvevents.errors import DecodeError
from router.kvevents.load_push import LoadStat, decode_load
from router.kvevents.source import LoadSource


class LoadSink(Protocol):
    """Whoever keeps what engines say about their load."""

    def load_reported(self, instance: str, rank: int, stat: LoadStat) -> None:
        """Take in the newest load of one rank of an instance."""
        ...


class LoadReader:
    """Reads any number of load sources. :meth:`close` once at the end."""

    def __init__(self, sink: LoadSink) -> None:
        self.refused = 0
        """Messages that were no load."""
        self._sink = sink
        self._context = zmq.asyncio.Context()
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add(self, instance: str, source: LoadSource) -> None:
        """Subscribe, replacing what was subscribed for that instance and rank.

        :raises OSError: when the endpoint is none.
        """
        self.remove(instance, source.rank)
        socket = self._context.socket(zmq.SUB)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 16)
        socket.setsockopt_string(zmq.SUBSCRIBE, source.topic)
        try:
            socket.connect(source.endpoint)
        except zmq.ZMQError as error:
            socket.close()
            raise OSError(error.errno, f"{source.endpoint}: {error.strerror}") from error
        task = asyncio.get_running_loop().create_task(self._read(instance, source.rank, socket))
        task.add_done_callback(lambda _: socket.close())  # also of one that was cancelled before it began
        self._tasks[instance, source.rank] = task

    def remove(self, instance: str, rank: int) -> None:
        """Unsubscribe; unknown ones are ignored."""
        task = self._tasks.pop((instance, rank), None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Unsubscribe everything."""
        for key in list(self._tasks):
            self.remove(*key)
        await asyncio.gather(*self._ending, return_exceptions=True)
        self._context.destroy(linger=0)

    async def _read(self, instance: str, rank: int, socket: "zmq.asyncio.Socket") -> None:
        while True:
            try:
                stat = decode_load(await socket.recv_multipart())
            except DecodeError:
                self.refused += 1
            else:
                self._sink.load_reported(instance, rank, stat)
