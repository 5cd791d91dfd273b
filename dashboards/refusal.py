"""Answers to forms that are refused: what was typed stays, and what is wrong stands at its field.

Pages send forms that carry ``data-kept`` by a script (``kept-forms.js``), which says so in a header. A refusal is then
a JSON object, ``{"message": TEXT, "fields": {NAME: [TEXT, ...]}}``, and what was typed is not touched. Without the
script the page comes anew, with the refusal above it.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, resolve_url

from controlplane.errors import ControlPlaneError, Invalid, NameTaken
from dashboards.every_answer import on_every_answer

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


@on_every_answer
def answer_kept_forms(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Tell the script where to go instead of redirecting it."""
    if not is_kept(request) or not 300 <= response.status_code < 400:
        return response
    location = response["Location"]
    if location.startswith(resolve_url(settings.LOGIN_URL)):
        return JsonResponse({"message": _SIGNED_OUT, "fields": {}}, status=401)
    return HttpResponse(status=204, headers={LOCATION: location})
