"""As many sockets as asked for, read as fast as frames come; ``readers.py ADDRESS COOKIE ORIGIN COUNT``.

Prints a line when all have their first frame and, when it is terminated, how many frames each got since.
"""

import asyncio
import json
import signal
import sys

from websockets.asyncio.client import connect


async def main(address: str, cookie: str, origin: str, count: int) -> None:
    """Read until terminated."""
    frames = [0] * count
    first = asyncio.Barrier(count + 1)
    tasks = [asyncio.create_task(read(address, cookie, origin, at, frames, first)) for at in range(count)]
    await first.wait()
    print("ready", flush=True)
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    await done.wait()
    print(json.dumps(frames), flush=True)
    for task in tasks:
        task.cancel()


async def read(address: str, cookie: str, origin: str, at: int, frames: list[int], first: asyncio.Barrier) -> None:
    """Read one socket."""
    async with connect(address, additional_headers={"Cookie": cookie}, origin=origin, max_size=None) as socket:  # type: ignore[arg-type]
        await socket.recv()
        await first.wait()
        async for _ in socket:
            frames[at] += 1


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
