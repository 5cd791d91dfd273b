"""The live page: the score plane, the distribution, the headline and the table.

These views are asynchronous because the hub belongs to the event loop; templates are rendered in a thread.
"""

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.telemetry.hub import hub
from dashboards.embedding import embeddable
from dashboards.live_texts import COLUMNS, STATES, STATS

LOCAL_ROUTER_URL = "http://127.0.0.1:8080"


@require_safe
@login_required
@never_cache
async def page(request: HttpRequest) -> HttpResponse:
    """Render the page with the present frame in it, so that the first paint has numbers."""
    context = {
        "frame": embeddable(hub().feed.newest()),
        "stats": STATS,
        "columns": COLUMNS,
        "states": STATES,
        "web_url": f"{request.scheme}://{request.get_host()}",
        "router_url": getattr(settings, "ROUTER_URL", LOCAL_ROUTER_URL),
    }
    return await sync_to_async(render)(request, "dashboards/live/page.html", context)


@require_safe
@login_required
@never_cache
async def frame(request: HttpRequest) -> HttpResponse:
    """Return the newest frame as JSON, for browsers that cannot hold a WebSocket."""
    return HttpResponse(hub().feed.newest(), content_type="application/json")
