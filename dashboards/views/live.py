"""The live page: the score plane, the distribution, the headline and the table.

These views are asynchronous because the hub belongs to the event loop; templates are rendered in a thread.
"""

import time

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.telemetry.hub import hub
from controlplane.telemetry.past import read_past
from dashboards.embedding import embeddable
from dashboards.frame_csv import write_instances
from dashboards.live_texts import COLUMNS, STATES, STATS
from dashboards.past_events import events_since
from dashboards.plots.score_heatmap import Column, score_heatmap_figure

PAST_MINUTES = ("15", "60", "120")
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


@require_safe
@login_required
@never_cache
def past(request: HttpRequest) -> HttpResponse:
    """Return the distribution over the last minutes as a figure, with what happened meanwhile."""
    minutes = request.GET.get("minutes", "")
    if minutes not in PAST_MINUTES:
        return JsonResponse({"error": f"minutes is one of {', '.join(PAST_MINUTES)}"}, status=400)
    columns = read_past(int(minutes), time.time())
    figure = score_heatmap_figure(
        [Column(column.start_s, column.score) for column in columns], events_since(columns[0].start_s)
    )
    return HttpResponse(msgspec.json.encode(figure), content_type="application/json")


@require_safe
@login_required
@never_cache
async def export(request: HttpRequest) -> HttpResponse:
    """Return the instances of the present frame as CSV, for spreadsheets."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="pointsman-instances.csv"'
    write_instances(answer, hub().newest_frame())
    return answer
