"""What every page asks again and again: whether scheduled tasks run."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.ops.standstill import tasks_stand_still_since


@require_safe
@login_required
@never_cache
def standstill(request: HttpRequest) -> HttpResponse:
    """Return the line that says so, or nothing."""
    return render(request, "dashboards/standstill.html", {"since": tasks_stand_still_since()})
