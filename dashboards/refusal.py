"""Answers to forms that are refused: what was typed stays, and what is wrong stands at its field.

Pages send forms that carry ``data-kept`` by a script (``kept-forms.js``), which says so in a header. A refusal is then
a JSON object, ``{"message": TEXT, "fields": {NAME: [TEXT, ...]}}``, and what was typed is not touched. Without the
script the page comes anew, with the refusal above it.
"""

from collections.abc import Mapping
from typing import Any

from asgiref.sync import iscoroutinefunction
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, resolve_url
from django.utils.decorators import sync_and_async_middleware

from controlplane.errors import ControlPlaneError, Invalid, NameTaken

HEADER = "X-Pointsman-Form"
LOCATION = "X-Pointsman-Location"
"""Where the page is to go after a form was taken; a redirect would be followed before the script could see it."""
_SIGNED_OUT = "Your session has ended. Sign in again in another tab, then send this once more: nothing is lost."


def refused(
    request: HttpRequest, error: ControlPlaneError, to: str, *args: Any, names: Mapping[str, str] | None = None
) -> HttpResponse:
    """Refuse a form; without the script go to the page ``to`` and show the message there.

    :param names: what the form calls fields that the service calls otherwise.
    """
    fields: Mapping[str, list[str]] = {}
    if isinstance(error, Invalid):
        fields = {(names or {}).get(name, name): faults for name, faults in error.fields.items()}
    elif isinstance(error, NameTaken):
        fields = {"name": [str(error)]}
    if is_kept(request):
        return JsonResponse({"message": "" if fields else str(error), "fields": fields}, status=error.status)
    messages.error(request, str(error))
    return redirect(to, *args)


def faulty(form: forms.Form) -> Invalid:
    """Return what is wrong with a form, as services say it."""
    return Invalid({field: [str(fault) for fault in faults] for field, faults in form.errors.items()})


def is_kept(request: HttpRequest) -> bool:
    """Say whether the page still holds what was typed, and waits for the answer."""
    return HEADER in request.headers


@sync_and_async_middleware
def answer_kept_forms(get_response: Any) -> Any:
    """Tell the script where to go instead of redirecting it."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> Any:
            return _answered(request, await get_response(request))

        return middleware

    def synchronous(request: HttpRequest) -> Any:
        return _answered(request, get_response(request))

    return synchronous


def _answered(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if not is_kept(request) or not 300 <= response.status_code < 400:
        return response
    location = response["Location"]
    if location.startswith(resolve_url(settings.LOGIN_URL)):
        return JsonResponse({"message": _SIGNED_OUT, "fields": {}}, status=401)
    return HttpResponse(status=204, headers={LOCATION: location})
