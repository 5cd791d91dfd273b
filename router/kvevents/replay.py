"""Asking an engine for messages that were missed, over its ROUTER socket.

``[b"", start]`` goes out; ``[b"", topic, number, payload]`` (vLLM from 0.26, SGLang) or ``[b"", number, payload]``
comes back for each message that is still kept, and at last one with the number -1. The engine's socket waits for
nobody: what it has no room for is left out, so messages are taken off the network at once and wait here.
"""

import asyncio
from collections.abc import AsyncGenerator

import zmq
import zmq.asyncio

from router.kvevents.errors import ReplayError

NUMBER_BYTES = 8
QUEUED_MESSAGES = 10_000
"""Messages of one replay that may wait here; as many as an engine keeps for one."""
END = (-1).to_bytes(NUMBER_BYTES, "big", signed=True)


def parse_reply(frames: list[bytes]) -> tuple[int, bytes] | None:
    """Return (number, payload) of a reply, or None at the end of a replay.

    :raises ReplayError: when it is neither.
    """
    if len(frames) < 2 or len(frames[-2]) != NUMBER_BYTES:
        raise ReplayError(f"a reply of {len(frames)} frames without a number")
    if frames[-2] == END:
        return None
    return int.from_bytes(frames[-2], "big"), frames[-1]


async def replay(
    context: "zmq.asyncio.Context", endpoint: str, start: int, timeout_s: float
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield (number, payload) of the kept messages from ``start`` on; some in the middle may be missing.

    :raises ReplayError: when a reply takes longer than ``timeout_s`` or is none.
    """
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, QUEUED_MESSAGES)
    try:
        socket.connect(endpoint)
        await socket.send_multipart([b"", start.to_bytes(NUMBER_BYTES, "big")])
        while True:
            try:
                async with asyncio.timeout(timeout_s):
                    frames = await socket.recv_multipart()
            except TimeoutError:
                raise ReplayError(f"{endpoint} did not answer within {timeout_s:g} s") from None
            reply = parse_reply(frames)
            if reply is None:
                return
            yield reply
    except zmq.ZMQError as error:
        raise ReplayError(f"{endpoint}: {error}") from error
    finally:
        socket.close()
