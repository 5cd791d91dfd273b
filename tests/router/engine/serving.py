"""An engine in this process on a free port, and a client so plain that it shows every byte."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from router.core.hardware_profiles import A100_80G
from router.engine.clock import StepClock
from router.engine.instance import EngineInstance
from router.engine.models import ServedModels
from router.engine.options import EngineOptions
from tests.fakes.step_clock import VirtualClock
from tests.patience import PATIENCE_S

HOST = "127.0.0.1"


def options(**changes: Any) -> EngineOptions:
    """Options of a small engine that serves ``tiny`` with 8,192 tokens of context, as the recorded ones did."""
    defaults = {"profile": A100_80G, "models": ServedModels(("tiny",), (), 8192), "hash_seed": 1}
    return EngineOptions(**{**defaults, **changes})


@asynccontextmanager
async def serving(clock: StepClock | None = None, **changes: Any) -> AsyncIterator[EngineInstance]:
    """Run an engine for the length of a block."""
    instance = EngineInstance(options(**changes), clock or VirtualClock())
    await instance.start(HOST, 0)
    try:
        yield instance
    finally:
        await instance.stop()


@dataclass(frozen=True)
class Answer:
    """A response taken apart."""

    status: int
    head: bytes
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def events(self) -> list[bytes]:
        """The data of a stream's events."""
        return [event.removeprefix(b"data: ") for event in self.body.split(b"\n\n") if event]

    @property
    def chunks(self) -> list[Any]:
        """The events of a stream that are JSON."""
        return [orjson.loads(event) for event in self.events if event != b"[DONE]"]


def parse(raw: bytes) -> Answer:
    """Take a raw HTTP/1.1 response apart; chunked bodies are joined."""
    head, _, body = raw.partition(b"\r\n\r\n")
    status_line, *lines = head.split(b"\r\n")
    headers = dict(line.decode().split(": ", 1) for line in lines)
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return Answer(int(status_line.split()[1]), head, headers, body)


def _joined(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(parts)


async def exchange(port: int, raw: bytes) -> bytes:
    """Send bytes and return everything until the server closes."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(raw)
    data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return data


def request(method: str, path: str, body: Any = None, headers: str = "", *, close: bool = True) -> bytes:
    """Render a request; a body that is not bytes is sent as JSON."""
    payload = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    connection = "connection: close\r\n" if close else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: test\r\n{connection}{headers}content-length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


async def call(port: int, method: str, path: str, body: Any = None, headers: str = "") -> Answer:
    """Send one request on its own connection."""
    return parse(await exchange(port, request(method, path, body, headers)))


def chat(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A chat body with one user message."""
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **fields}


async def until(condition: Any, timeout_s: float = PATIENCE_S) -> None:
    """Wait until a condition of other tasks holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.002)
