"""Static files: WhiteNoise behind Django's asynchronous handler.

WhiteNoise's own middleware is synchronous, which would hold a thread for the whole of every long poll; this one lets
everything that is not a static file pass without leaving the event loop.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Answers requests for static files, and passes on all others."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Serve one request."""
        if not self._asynchronous:
            return self._serve_file(request) or self.get_response(request)
        return self._serve(request)

    async def _serve(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(self.static_prefix):
            found = await sync_to_async(self._serve_file, thread_sensitive=False)(request)
            if found is not None:
                return found
        response: HttpResponseBase = await self.get_response(request)
        return response

    def _serve_file(self, request: HttpRequest) -> HttpResponse | None:
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        if file is None:
            return None
        found = file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
