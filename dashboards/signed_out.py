"""Answers to a page that asks for its parts after its session has ended: it is told so, for the sign-in page would be
shown in the place of the part.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url

from dashboards.every_answer import on_every_answer


def leads_to_sign_in(response: HttpResponse) -> bool:
    """Say whether an answer leads to the sign-in page."""
    is_redirect = 300 <= response.status_code < 400
    return is_redirect and response["Location"].startswith(resolve_url(settings.LOGIN_URL))


@on_every_answer
def tell_parts_that_nobody_is_signed_in(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Refuse parts with 401 instead of leading them to the sign-in page."""
    is_part = request.headers.get("HX-Request") == "true"
    return HttpResponse(status=401) if is_part and leads_to_sign_in(response) else response
