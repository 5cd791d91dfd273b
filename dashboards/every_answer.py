"""Middleware that may answer otherwise than the page did."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware


def on_every_answer(change: Callable[[HttpRequest, HttpResponse], HttpResponse]) -> Callable[[Any], Any]:
    """Make middleware of a function from a request and its answer to the answer that is sent."""

    @sync_and_async_middleware
    def middleware(get_response: Any) -> Any:
        if iscoroutinefunction(get_response):

            async def changed(request: HttpRequest) -> HttpResponse:
                return change(request, await get_response(request))

            return changed
        return lambda request: change(request, get_response(request))

    return middleware
