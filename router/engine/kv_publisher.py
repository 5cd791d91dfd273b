"""The two ZMQ sockets of KV events: PUB for what happens, ROUTER for what somebody missed.

Publishing never waits and never fails because nobody listens. The last :data:`BUFFER_BATCHES` batches can be asked
for again: ``[b"", start_seq]`` is answered by ``[b"", topic, seq, payload]`` for each, and then sequence -1.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

import zmq
import zmq.asyncio

BUFFER_BATCHES = 10_000
SEND_LIMIT = 100_000
"""Messages that ZMQ keeps for a slow subscriber before it drops some."""
END_OF_REPLAY = (-1).to_bytes(8, "big", signed=True)


@dataclass(frozen=True, slots=True)
class EventEndpoints:
    """Where an engine's rank 0 publishes: ``tcp://host:port`` both, and the topic."""

    events: str
    replay: str
    topic: str

    def of_rank(self, rank: int) -> "EventEndpoints":
        """Return the endpoints of a data-parallel rank: ports count up by rank, except free ones (``*``)."""
        return EventEndpoints(_shifted(self.events, rank), _shifted(self.replay, rank), self.topic)


def _shifted(endpoint: str, rank: int) -> str:
    head, _, port = endpoint.rpartition(":")
    return endpoint if port == "*" else f"{head}:{int(port) + rank}"


class KvPublisher:
    """Publishes the batches of one engine, numbered from 0.

    :raises zmq.ZMQError: when an endpoint is taken, or is none.
    """

    def __init__(self, endpoints: EventEndpoints) -> None:
        self._topic = endpoints.topic.encode()
        self._sequence = 0
        self._buffer: deque[tuple[bytes, bytes]] = deque(maxlen=BUFFER_BATCHES)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._pub = self._context.socket(zmq.PUB)
        self._replay = zmq.asyncio.Context.shadow(self._context).socket(zmq.ROUTER)
        self._task: asyncio.Task[None] | None = None
        self._pub.setsockopt(zmq.LINGER, 0)
        self._replay.setsockopt(zmq.LINGER, 0)
        self._pub.setsockopt(zmq.SNDHWM, SEND_LIMIT)
        try:
            self._pub.bind(endpoints.events)
            self._replay.bind(endpoints.replay)
        except zmq.ZMQError:
            self._release()
            raise
        self.endpoints = EventEndpoints(
            self._pub.getsockopt_string(zmq.LAST_ENDPOINT),
            self._replay.getsockopt_string(zmq.LAST_ENDPOINT),
            endpoints.topic,
        )

    @property
    def published(self) -> int:
        """How many batches were published."""
        return self._sequence

    def start(self) -> None:
        """Begin to answer replays."""
        self._task = asyncio.get_running_loop().create_task(self._serve_replays())

    def publish(self, payload: bytes) -> None:
        """Send one batch to all subscribers."""
        number = self._sequence.to_bytes(8, "big")
        self._sequence += 1
        self._buffer.append((number, payload))
        self._pub.send_multipart([self._topic, number, payload], zmq.NOBLOCK)

    async def close(self) -> None:
        """Stop answering and close both sockets; afterwards their ports are free."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._release()

    def _release(self) -> None:
        self._pub.close()
        self._replay.close()
        self._context.term()  # closing alone leaves the ports to a thread that gives them up some time later

    async def _serve_replays(self) -> None:
        while True:
            frames = await self._replay.recv_multipart()
            if len(frames) != 3 or len(frames[2]) != 8:
                continue
            client, start = frames[0], int.from_bytes(frames[2], "big", signed=True)
            for number, payload in list(self._buffer):
                if int.from_bytes(number, "big") >= start:
                    await self._replay.send_multipart([client, b"", self._topic, number, payload])
            await self._replay.send_multipart([client, b"", END_OF_REPLAY, b""])
