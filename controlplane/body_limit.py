"""The largest request body of the web process, checked before anything is kept of it.

Django spools a whole body to disk before a view, or the sign-in, is asked: without a limit in front of it anybody could
fill the disk.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from controlplane.http import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyTooLarge(Exception):
    """More of a body came than is allowed."""


class BodyLimit:
    """Wraps an ASGI application: HTTP bodies above ``most_bytes`` are answered 413 and read no further."""

    def __init__(self, application: Application, most_bytes: int) -> None:
        self._application = application
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; everything but HTTP passes."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif _declared_bytes(scope) > self._most_bytes:
            await _refuse(send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = 0
        answered = False

        async def counting_receive() -> Mapping[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most_bytes:
                raise BodyTooLarge
            return message

        async def noting_send(message: Mapping[str, Any]) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._application(scope, counting_receive, noting_send)
        except BodyTooLarge:
            if not answered:
                await _refuse(send)


def _declared_bytes(scope: Scope) -> int:
    """Return the declared length; 0 without one (the server has refused what is no number)."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)


async def _refuse(send: Send) -> None:
    body = b'{"type":"urn:pointsman:problem:too_large","title":"Content Too Large","status":413,"code":"too_large"}'
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
