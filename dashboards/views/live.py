"""The live page: the score plane, the distribution, the headline and the table.

These views are asynchronous because the hub belongs to the event loop; templates are rendered in a thread.
"""

import time
from pathlib import Path

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.admission.selectors import admission
from controlplane.alerts.score_line import ScoreLine, score_line
from controlplane.telemetry.frame import Headline, WorkloadRow
from controlplane.telemetry.history import History, Question, read_history
from controlplane.telemetry.hub import hub
from controlplane.telemetry.rollups import KEPT_S
from controlplane.telemetry.selection import Selection
from dashboards.embedding import embeddable
from dashboards.headline_texts import door_text, stat_texts
from dashboards.json_answer import json_answer
from dashboards.live_range import MOST_DAYS, asked_range
from dashboards.live_texts import COLUMNS, COURSES, DOOR, MARKS, RANGES, REFUSALS, STATES
from dashboards.past_events import PastEvent, events_since

_SCRIPTS = Path(__file__).resolve().parents[1] / "static"
MODULES = tuple(str(path.relative_to(_SCRIPTS)) for path in sorted(_SCRIPTS.glob("dashboards/js/live/*.js")))
"""The modules of the page: named in its head, a browser fetches them at once instead of one import after the other."""
MOST_APART = 2
"""Instances that can be set apart in one answer."""


class _FirstNumbers(msgspec.Struct, frozen=True):
    """What a frame says first."""

    selection: Selection
    headline: Headline
    workloads: tuple[WorkloadRow, ...]


@require_safe
@login_required
@never_cache
async def page(request: HttpRequest) -> HttpResponse:
    """Render the page with the present frame in it, so that the first paint has numbers."""
    newest = _newest(request)
    first = msgspec.json.decode(newest, type=_FirstNumbers)
    has_full_instances = await sync_to_async(_instances_fill)()
    counted = [row for row in first.workloads if first.selection.workload in ("", row.name)]
    context = {
        "frame": embeddable(newest),
        "door": door_text(counted, has_full_instances),
        "door_stat": DOOR,
        "refusals": msgspec.json.encode(REFUSALS).decode(),
        "has_full_instances": has_full_instances,
        "modules": MODULES,
        "stats": stat_texts(first.headline),
        "ranges": RANGES,
        "most_days": MOST_DAYS,
        "kept_hours": KEPT_S / 3600,
        "courses": COURSES,
        "marks": MARKS,
        "columns": COLUMNS,
        "states": STATES,
        "web_url": f"{request.scheme}://{request.get_host()}",
        "router_url": settings.ROUTER_URL,
    }
    return await sync_to_async(render)(request, "dashboards/live/page.html", context)


@require_safe
@login_required
@never_cache
async def frame(request: HttpRequest) -> HttpResponse:
    """Return the newest frame as JSON, for browsers that cannot hold a WebSocket."""
    return HttpResponse(_newest(request), content_type="application/json")


class LivePast(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows beside the frame."""

    history: History
    events: tuple[PastEvent, ...]
    line: ScoreLine
    instances_fill: bool
    """Whether instances count as full from some number of requests on."""


@require_safe
@login_required
@never_cache
def past(request: HttpRequest) -> HttpResponse:
    """Return minutes of what is selected, what happened meanwhile, and what holds now: where the alert begins, and
    whether instances can be full."""
    try:
        asked = asked_range(request.GET)
    except ValueError as error:
        return _refused(str(error))
    then = request.GET.get("then", "")
    if then and not (then.isascii() and then.isdigit() and len(then) < 12):
        return _refused("then is a moment in whole Unix seconds")
    question = Question(
        minutes=asked.minutes,
        from_s=asked.from_s,
        selection=_selection(request),
        instances=tuple(dict.fromkeys(filter(None, request.GET.getlist("apart"))))[:MOST_APART],
        then_s=int(then) if then else None,
    )
    now_s = time.time()
    history = read_history(question, now_s)
    return json_answer(
        LivePast(
            history=history,
            events=tuple(events_since(history.start_s, asked.until_s)),
            line=score_line(now_s, question.selection.workload),
            instances_fill=_instances_fill(),
        )
    )


def _instances_fill() -> bool:
    return admission().instance_requests is not None


def _selection(request: HttpRequest) -> Selection:
    return Selection.of(model=request.GET.get("model"), workload=request.GET.get("workload"))


def _newest(request: HttpRequest) -> str:
    return hub().feeds.of(_selection(request)).newest()


def _refused(why: str) -> HttpResponse:
    return JsonResponse({"error": why}, status=400)
