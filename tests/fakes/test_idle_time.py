"""The loop on which other tests measure: only waiting takes time there."""

import asyncio
import time

from tests.fakes.idle_time import in_idle_time


@in_idle_time
async def test_waiting_takes_as_long_as_asked_and_work_takes_no_time() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(3600)
    time.sleep(0.02)
    assert loop.time() == 3600


@in_idle_time
async def test_timers_fire_in_their_order_each_at_its_time() -> None:
    loop, fired = asyncio.get_running_loop(), []
    for delay_s in (30.0, 10.0, 20.0):
        loop.call_later(delay_s, lambda: fired.append(loop.time()))
    await asyncio.sleep(40)
    assert fired == [10.0, 20.0, 30.0]


@in_idle_time
async def test_time_waits_for_what_is_under_way_between_sockets() -> None:
    ended = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(0.001):
            for number in range(100):
                writer.write(b"%d\n" % number)
                assert await reader.readline() == b"%d\n" % number
        assert asyncio.get_running_loop().time() == 0
        writer.close()
        await ended.wait()
