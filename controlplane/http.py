"""HTTP of the web process: which requests stay in the event loop, and how all others get a thread.

Django's own ASGI handler crosses into a thread and back for nearly every middleware, gives each request a new thread,
and each thread a new connection to the database: about 6 ms of processor time, several times what most views take. Here
a request whose view is synchronous crosses once, into one of a few threads that live as long as the process and keep
their connections; a request whose view is asynchronous (long polls, snapshots, live pages) stays in the event loop, and
what it does synchronously shares one thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from typing import IO, Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve, set_script_prefix

from controlplane.api.slashes import completed

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
THREADS = 8
"""Of one web process, each with a connection to the database."""


class LoopHandler(ASGIHandler):
    """Serves asynchronous views."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request without a thread of its own."""
        await self.handle(scope, receive, send)


class ThreadHandler(ASGIHandler):
    """Serves synchronous views, each request with all its middleware in one thread of a pool."""

    def __init__(self, threads: int = THREADS) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a client that goes away after it was sent does not end it."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            response = await asyncio.get_running_loop().run_in_executor(self._pool, self._respond, scope, body)
        await self.send_response(response, send)

    def _respond(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        """Return a response that is whole.

        :raises TypeError: for one that streams: its parts would be made in no thread of the pool, after its end.
        """
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        request, refusal = self.create_request(scope, body)
        response: HttpResponseBase | None = refusal if request is None else self.get_response(request)
        if response is None:
            raise RuntimeError("neither a request nor its refusal")
        if response.streaming:
            raise TypeError("a synchronous view must not stream its response: make the view asynchronous")
        response.close()
        return response


class HttpApplication:
    """Hands each request to the handler for its kind of view."""

    def __init__(self) -> None:
        self._loop = LoopHandler()
        self._threads = ThreadHandler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        handler = self._loop if _is_asynchronous(_path_of(scope)) else self._threads
        await handler(scope, receive, send)


def _path_of(scope: Scope) -> str:
    return completed(str(scope["path"]).removeprefix(scope.get("root_path", "")))


@lru_cache(maxsize=4096)
def _is_asynchronous(path: str) -> bool:
    try:
        return iscoroutinefunction(resolve(path).func)
    except Resolver404:
        return False
