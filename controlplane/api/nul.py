"""NUL characters in addresses, which PostgreSQL refuses: invalid in a query; in a path, what nothing is named."""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, JsonResponse
from django.utils.decorators import sync_and_async_middleware

from controlplane.errors import Invalid
from controlplane.problems import not_found, problem_response

_NUL = "\0"


@sync_and_async_middleware
def refuse_nul(get_response: Any) -> Any:
    """Refuse paths and queries with a NUL."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> Any:
            return _refusal(request) or await get_response(request)

        return middleware

    def synchronous(request: HttpRequest) -> Any:
        return _refusal(request) or get_response(request)

    return synchronous


def _refusal(request: HttpRequest) -> JsonResponse | None:
    if _NUL in request.path_info:
        return not_found(request)
    if "%00" in request.META.get("QUERY_STRING", "") or _NUL in request.META.get("QUERY_STRING", ""):
        return problem_response(Invalid({"query": ["It must not hold NUL characters."]}))
    return None
