"""The live page: the score plane, the distribution, the headline and the table."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.telemetry.hub import HUB


@require_safe
@login_required
def page(request: HttpRequest) -> HttpResponse:
    """Render the page with the present frame in it, so that the first paint has numbers."""
    return render(request, "dashboards/live/page.html", {"frame": _embeddable(HUB.feed.newest())})


@require_safe
@login_required
@never_cache
def frame(request: HttpRequest) -> HttpResponse:
    """Return the newest frame as JSON, for browsers that cannot hold a WebSocket."""
    return HttpResponse(HUB.feed.newest(), content_type="application/json")


def _embeddable(document: str) -> SafeString:
    # Inside a script element only "<" could end it; JSON has it in strings alone, where the escape means the same.
    return mark_safe(document.replace("<", "\\u003c"))  # noqa: S308
