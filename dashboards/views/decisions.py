"""The decisions: recent samples, and one of them explained.

These views are asynchronous because the hub belongs to the event loop; templates are rendered in a thread.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from controlplane.decisions.explaining import Explanation, at_hand, explain_in_loop
from controlplane.decisions.questions import is_request_id
from controlplane.errors import Conflict, Invalid
from controlplane.policies.presets import preset_policies
from controlplane.policies.selectors import live_policies
from controlplane.telemetry.decision_samples import CAPACITY
from controlplane.telemetry.hub import hub
from controlplane.telemetry.what_if import Alternative, alternatives
from dashboards.decision_row import agreement, candidate_rows, decision_row, matching
from dashboards.embedding import embeddable_json
from router.core.policy import Policy
from router.proxy.recent_decisions import MOST_DECISIONS
from router.snapshot import DecisionSample

PAGE_ROWS = 50


@require_safe
@login_required
@never_cache
async def page(request: HttpRequest) -> HttpResponse:
    """List recent decisions; a whole request id leads straight to its decision, and so does one that is not listed."""
    wanted = request.GET.get("q", "").strip()
    if hub().decisions.find(wanted) is not None:
        return redirect("dashboards:decision", wanted)
    listed = _listed(request)
    if is_request_id(wanted) and not listed["rows"]:
        return redirect("dashboards:decision", wanted)
    newest = {} if not listed["rows"] else await _at_hand(listed["rows"][0].sample)
    return await _render(request, "dashboards/decisions/page.html", listed | newest)


@require_safe
@login_required
@never_cache
async def newer(request: HttpRequest) -> HttpResponse:
    """Say how many decisions came since the newest one on the page."""
    since = hub().decisions.since(request.GET.get("since", ""))
    return await _render(request, "dashboards/decisions/newer.html", {"newer": since, "all": CAPACITY})


@require_safe
@login_required
@never_cache
@vary_on_headers("HX-Request")
async def detail(request: HttpRequest, request_id: str) -> HttpResponse:
    """Explain one decision, beside the list; for htmx the explanation alone.

    What is at hand is shown at once, and the page asks the routers whether there is a newer one ``after`` it.
    """
    if "after" in request.GET:
        return await _newer_than(_moment(request.GET["after"]), request, request_id)
    sample = await sync_to_async(at_hand)(request_id)
    if request.headers.get("HX-Request") == "true":
        context = await (_searched(request_id) if sample is None else _at_hand(sample))
        return await _render(request, "dashboards/decisions/detail.html", context)
    if sample is not None:
        context = await _at_hand(sample)
    else:
        context = {"request_id": request_id, "asking": is_request_id(request_id)}
    status = 404 if sample is None and not context["asking"] else 200
    return await _render(request, "dashboards/decisions/page.html", _listed(request) | context, status)


async def _newer_than(time_unix_s: float, request: HttpRequest, request_id: str) -> HttpResponse:
    """Answer with the newest decision where it is newer than what is shown, else with nothing."""
    try:
        found = (await explain_in_loop(request_id)).decision
    except (Conflict, Invalid):
        found = None
    if found is None or found.time_unix_s <= time_unix_s:
        return HttpResponse(status=204)
    context = await _explained(found) | {"has_replaced": True}
    return await _render(request, "dashboards/decisions/detail.html", context)


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Http404 from None


async def _searched(request_id: str) -> dict[str, Any]:
    if not is_request_id(request_id):
        return {"request_id": request_id}
    try:
        found: Explanation = await explain_in_loop(request_id)
    except Conflict as error:
        return {"request_id": request_id, "fault": str(error)}
    if found.decision is not None:
        return await _explained(found.decision)
    return {"request_id": request_id, "search": found, "remembered": MOST_DECISIONS}


def _listed(request: HttpRequest) -> dict[str, Any]:
    samples = hub().decisions.recent(CAPACITY)
    chosen = {name: request.GET.get(name, "") for name in ("q", "workload", "instance")}
    found = matching(samples, chosen["q"], chosen["workload"], chosen["instance"])
    return {
        "rows": [decision_row(sample) for sample in islice(found, PAGE_ROWS)],
        "kept": len(samples),
        "capacity": CAPACITY,
        "newest": samples[0].request_id if samples else "",
        "router_url": settings.ROUTER_URL,
        "filters": chosen,
        "workloads": _distinct(sample.workload for sample in samples),
        "instances": _distinct(sample.chosen for sample in samples if sample.chosen),
    }


async def _at_hand(sample: DecisionSample) -> dict[str, Any]:
    """Explain a decision that need not be the newest one about its request."""
    return await _explained(sample) | {"shown_at": repr(sample.time_unix_s)}


async def _explained(sample: DecisionSample) -> dict[str, Any]:
    policies = await sync_to_async(live_policies)()
    grouped = _grouped(sample, policies)
    return {
        "request_id": sample.request_id,
        "decision": decision_row(sample),
        "candidates": list(candidate_rows(sample)),
        "alternatives": grouped,
        "agreement": agreement([one for _, group in grouped for one in group if one.policy.label != sample.policy]),
        "document": embeddable_json(sample),
    }


def _grouped(sample: DecisionSample, live: Sequence[Policy]) -> Sequence[tuple[str, Sequence[Alternative]]]:
    """Return what other policies would have chosen: those live here, the presets, and the rules that others use."""
    presets = preset_policies()
    found = list(alternatives(sample, [*live, *presets]))
    middle = len(live) + len(presets)
    return (
        ("Live here", found[: len(live)]),
        ("Presets", found[len(live) : middle]),
        ("Other rules", found[middle:]),
    )


def _distinct(names: Any) -> Sequence[str]:
    return sorted(set(names))


async def _render(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    return await sync_to_async(render)(request, template, context, status=status)
