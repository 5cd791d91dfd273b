"""``pointsman engine`` as a process: several engines, an orderly end, clear refusals."""

import asyncio
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.ports import free_ports
from tests.router.engine.serving import HOST, call, chat, parse, request

ROOT = Path(__file__).resolve().parents[3]


async def engine_process(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "router.cli", "engine", *arguments), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )


async def first_line(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stderr.readline()).decode()


async def test_engines_serve_on_consecutive_ports_and_end_on_sigterm() -> None:
    port = free_ports(2)
    process = await engine_process("--port", str(port), "--count", "2", "--model", "a,b", "--speedup", "50")
    assert f"{port}, {port + 1}" in await first_line(process)
    listed = [[model["id"] for model in (await call(port + n, "GET", "/v1/models")).json["data"]] for n in range(2)]
    assert listed == [["a", "b"], ["a", "b"]]
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request("POST", "/v1/chat/completions", chat("x", max_tokens=100_000, stream=True) | {"model": "a"}))
    await reader.readuntil(b"\r\n\r\n")
    first = await reader.readuntil(b"\n\n\r\n")
    process.send_signal(signal.SIGTERM)
    rest = await reader.read()
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0
    answer = parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + first + rest)
    assert answer.chunks[-1]["choices"][0]["finish_reason"] == "abort"
    assert answer.events[-1] == b"[DONE]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--profile", "abacus"), "no hardware profile"),
        (("--speedup", "0"), "speed-up"),
        (("--max-model-len", "100000000"), "does not fit"),
    ],
)
async def test_what_cannot_be_served_is_said_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    process = await engine_process("--port", str(free_ports(1)), *arguments)
    assert words in await first_line(process)
    assert await process.wait() == 2


async def test_a_taken_port_is_said_in_one_line() -> None:
    with socket.create_server((HOST, 0)) as taken:
        process = await engine_process("--port", str(taken.getsockname()[1]))
        assert "in use" in await first_line(process)
        assert await process.wait() == 1
