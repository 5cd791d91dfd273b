"""Paths of the REST interface with or without their last slash: a redirect would lose the body of a PUT."""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

_PREFIX = "/api/"


@sync_and_async_middleware
def api_slashes(get_response: Any) -> Any:
    """Read ``/api/v1/instances`` as ``/api/v1/instances/``."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> Any:
            _complete(request)
            return await get_response(request)

        return middleware

    def synchronous(request: HttpRequest) -> Any:
        _complete(request)
        return get_response(request)

    return synchronous


def completed(path: str) -> str:
    """Return a path of the REST interface with its last slash, and any other as it is."""
    return f"{path}/" if path.startswith(_PREFIX) and not path.endswith("/") else path


def _complete(request: HttpRequest) -> None:
    request.path_info = completed(request.path_info)
