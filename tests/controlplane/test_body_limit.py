"""Nobody fills the disk with a request body."""

from collections.abc import Mapping
from typing import Any

import pytest

from controlplane.body_limit import BodyLimit

LIMIT = 10


async def answer(chunks: list[bytes], headers: list[tuple[bytes, bytes]] | None = None) -> tuple[int, bytes]:
    """Send a body in chunks to an application that reads it whole; return the status and what it had read."""
    read = b""
    sent: list[Mapping[str, Any]] = []
    waiting = list(chunks)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal read
        more = True
        while more:
            message = await receive()
            read += message["body"]
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await BodyLimit(application, LIMIT)({"type": "http", "headers": headers or []}, receive, send)
    return sent[0]["status"], read


@pytest.mark.parametrize("chunks", [[b""], [b"x" * LIMIT], [b"x" * 6, b"y" * 4]])
async def test_a_body_up_to_the_limit_passes_whole(chunks: list[bytes]) -> None:
    assert await answer(chunks) == (200, b"".join(chunks))


async def test_a_declared_length_above_the_limit_is_refused_unread() -> None:
    assert await answer([b"x" * 11], [(b"content-length", b"11")]) == (413, b"")


async def test_an_undeclared_body_is_refused_as_soon_as_it_is_above_the_limit() -> None:
    status, read = await answer([b"x" * 6, b"y" * 6, b"z" * 6])
    assert (status, read) == (413, b"x" * 6)


async def test_other_protocols_pass() -> None:
    seen = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    await BodyLimit(application, LIMIT)({"type": "websocket"}, None, None)  # type: ignore[arg-type]
    assert seen == ["websocket"]
