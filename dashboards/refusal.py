"""Answers to forms that are refused: what was typed stays, and what is wrong stands at its field.

Pages send forms that carry ``data-kept`` by a script (``kept-forms.js``), which says so in a header. A refusal is then
a JSON object, ``{"message": TEXT, "fields": {NAME: [TEXT, ...]}}``, and what was typed is not touched. Without the
script a page of its own has the refusal and what was typed, to be sent again from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.errors import ControlPlaneError, Invalid, NameTaken
from dashboards.every_answer import on_every_answer
from dashboards.signed_out import leads_to_sign_in

HEADER = "X-Pointsman-Form"
LOCATION = "X-Pointsman-Location"
"""Where the page is to go after a form was taken; a redirect would be followed before the script could see it."""
_SIGNED_OUT = "Your session has ended. Sign in again in another tab, then send this once more: nothing is lost."

_UNSEEN = frozenset({"expected", "to", "wish", "workload"})
"""What forms say for themselves: nobody typed it."""


class Typed(NamedTuple):
    """One field of a form as it was sent, and what is wrong with it."""

    name: str
    label: str
    value: str
    faults: Sequence[str]
    is_seen: bool

    @property
    def is_ticked(self) -> bool:
        """Whether it was a box that was ticked."""
        return self.value == "on"

    @property
    def is_long(self) -> bool:
        """Whether it needs more than a line."""
        return "\n" in self.value or len(self.value) > 60 or self.value.startswith("{")


def refused(
    request: HttpRequest, error: ControlPlaneError, to: str, *args: Any, names: Mapping[str, str] | None = None
) -> HttpResponse:
    """Refuse a form; without the script show what was typed again, with the way back to the page ``to``.

    :param names: what the form calls fields that the service calls otherwise.
    """
    fields: Mapping[str, list[str]] = {}
    if isinstance(error, Invalid):
        fields = {(names or {}).get(name, name): faults for name, faults in error.fields.items()}
    elif isinstance(error, NameTaken):
        fields = {"name": [str(error)]}
    if is_kept(request):
        return JsonResponse({"message": "" if fields else str(error), "fields": fields}, status=error.status)
    context = {
        "message": "" if fields else str(error),
        "typed": list(_typed(request, fields)),
        "back": reverse(to, args=args),
    }
    return render(request, "dashboards/refused.html", context, status=error.status)


def _typed(request: HttpRequest, faults: Mapping[str, Sequence[str]]) -> Iterator[Typed]:
    """Return what was sent; faults that no field has are said at a field of their own."""
    sent = {name: values[-1] for name, values in request.POST.lists() if name != "csrfmiddlewaretoken"}
    at = {name: _field_of(name, sent) for name in faults}
    for name, value in sent.items():
        mine = [text for fault, field in at.items() if field == name for text in faults[fault]]
        yield Typed(name, name.replace("_", " ").capitalize(), str(value), mine, name not in _UNSEEN)
    for name in faults.keys() - {fault for fault, field in at.items() if field}:
        yield Typed(name, name.replace("_", " ").capitalize(), "", faults[name], is_seen=True)


def _field_of(fault: str, sent: Mapping[str, object]) -> str | None:
    """Return the field of a fault: ``match.headers`` is of a field match, ``limits.factor`` of a field factor."""
    parts = fault.split(".")
    wanted = [".".join(parts[: len(parts) - index]) for index in range(len(parts))]
    return next((name for name in [*wanted, parts[-1]] if name in sent), None)


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
    if leads_to_sign_in(response):
        return JsonResponse({"message": _SIGNED_OUT, "fields": {}}, status=401)
    return HttpResponse(status=204, headers={LOCATION: response["Location"]})
