"""Addresses that only take forms, when somebody opens them: after signing in again, or by the address of a page that
answered a form. There is no page at them, but there is one above.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve

from dashboards.every_answer import on_every_answer

_NOT_ALLOWED = 405


@on_every_answer
def lead_to_pages(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Lead whoever opens such an address to the nearest page above it."""
    match = request.resolver_match
    if response.status_code != _NOT_ALLOWED or request.method != "GET" or match is None:
        return response
    return redirect(page_above(request.path)) if match.app_name == "dashboards" else response


def page_above(path: str) -> str:
    """Return the nearest address above that leads anywhere; one that is no page either leads on."""
    above = path.rstrip("/").rpartition("/")[0] + "/"
    try:
        resolve(above)
    except Resolver404:
        return page_above(above)
    return above
