"""When the fleet is full: the part of the Workloads page that says what happens then, and what happens now."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts.access import Scope
from controlplane.admission.models import AdmissionSettings
from controlplane.admission.selectors import admission
from controlplane.admission.services import set_admission
from controlplane.errors import Invalid, RevisionRequired, StaleRevision
from dashboards.access import may, needs, signed_in_actor
from dashboards.door_view import door_now
from dashboards.forms.admission_form import AdmissionForm


@require_safe
@login_required
@never_cache
def door(request: HttpRequest) -> HttpResponse:
    """Return the numbers alone; the page asks for them again and again."""
    return render(request, "dashboards/workloads/door.html", {"door": door_now(admission().instance_requests)})


@require_POST
@needs(Scope.POLICIES)
@never_cache
def keep(request: HttpRequest) -> HttpResponse:
    """Set what the form says, and return the form; somebody else's change is shown before it is written over."""
    form, seen = AdmissionForm(request.POST), request.POST.get("revision", "")
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            expected = int(seen) if seen.isdecimal() else None
            row = set_admission(actor=signed_in_actor(request), rule=form.rule(), expected=expected)
        except Invalid as error:
            form.add_faults(error.fields)
        except (StaleRevision, RevisionRequired) as error:
            context |= {"conflict": str(error), "standing": form.differing(admission().rule)}
        else:
            context["kept"] = True
            form = AdmissionForm(rule=row.rule)
    return render(request, "dashboards/workloads/admission.html", shown(request, form) | context)


def shown(request: HttpRequest, form: AdmissionForm | None = None) -> dict[str, Any]:
    """Return what the page shows of admission, live numbers included."""
    row: AdmissionSettings = admission()
    return {
        "admission": row,
        "form": AdmissionForm(rule=row.rule) if form is None else form,
        "door": door_now(row.instance_requests),
        "may_change": may(request, Scope.POLICIES),
    }
