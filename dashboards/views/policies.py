"""Policies: the list, the editor beside it, preview, publishing, going back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.accounts.access import Scope
from controlplane.bridge.workers import convergence
from controlplane.errors import ControlPlaneError, Invalid, NotFound, StaleRevision
from controlplane.lab.own_traffic import own_recording
from controlplane.policies import selectors
from controlplane.policies.models import Policy
from controlplane.policies.presets import PRESETS
from controlplane.policies.services import revisions
from controlplane.previews.selectors import preview as preview_policy
from controlplane.telemetry.learnt import learnt_by_worker
from dashboards.access import may, needs, signed_in_actor
from dashboards.policy_editor import (
    Editing,
    begin_editing,
    changes_from_live,
    field_lines,
    history,
    live_number,
    loose_faults,
    read_content,
    routing_policy,
)
from dashboards.refusal import refused

PREVIEW_TOKENS = 2_000
"""Length of the cold prompt that is placed on the present fleet."""


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all policies; the one that routes what no rule matches is open."""
    return redirect("dashboards:policy", selectors.default_policy().name)


@require_safe
@login_required
@never_cache
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """Open one policy in the editor."""
    policy = _find(name)
    return _page(request, policy, begin_editing(policy))


@require_safe
@login_required
@never_cache
def workers(request: HttpRequest) -> HttpResponse:
    """Return how far the newest configuration has come."""
    return render(request, "dashboards/policies/convergence.html", {"convergence": convergence()})


@require_POST
@login_required
@never_cache
def preview(request: HttpRequest, name: str) -> HttpResponse:
    """Say what the content being typed would change, or what is wrong with it."""
    policy, text = _find(name), request.POST.get("content", "")
    context: dict[str, Any] = {"policy": policy, "prompt_tokens": PREVIEW_TOKENS}
    try:
        wanted = routing_policy(text, name)
        context |= {"changes": changes_from_live(policy, text), "preview": preview_policy(wanted, PREVIEW_TOKENS)}
    except Invalid as error:
        at_fields = [line for line in field_lines(error.fields) if line.faults]
        context |= {"is_faulty": True, "at_fields": at_fields, "loose_faults": loose_faults(error.fields)}
    return render(request, "dashboards/policies/preview.html", context)


@require_POST
@needs(Scope.POLICIES)
@never_cache
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Keep a draft, discard it, publish what was edited, or go on from what somebody else published meanwhile."""
    policy, wish = _find(name), request.POST.get("wish")
    if wish == "discard":
        revisions.discard_draft(actor=signed_in_actor(request), name=name)
        return redirect("dashboards:policy", name)
    editing = Editing(request.POST.get("content", ""), _number(request), message=request.POST.get("message", ""))
    if "accepted" in request.POST:
        return _page(request, policy, replace(editing, expected=_number(request, "accepted")))
    try:
        _write(request, name, wish, editing)
    except StaleRevision:
        policy.refresh_from_db()
        return _page(request, policy, replace(editing, conflict=policy.live), status=409)
    except Invalid as error:
        return _page(request, policy, replace(editing, faults=error.fields), status=400)
    return redirect("dashboards:policy", name)


@require_POST
@needs(Scope.POLICIES)
def roll_back(request: HttpRequest, name: str) -> HttpResponse:
    """Publish the content of an earlier revision as the next one."""
    try:
        made = revisions.roll_back(
            actor=signed_in_actor(request),
            name=name,
            to=_number(request, "to"),
            message=request.POST.get("message", ""),
            expected=_number(request),
        )
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:policy", name)
    messages.success(request, f"{name}@{made.number} is live; it restores revision {made.restores}.")
    return redirect("dashboards:policy", name)


@require_POST
@needs(Scope.POLICIES)
def create(request: HttpRequest) -> HttpResponse:
    """Make a policy that begins as a preset, or as a copy of another one."""
    name = request.POST.get("name", "").strip()
    content = _beginning(request.POST.get("begin", ""))
    try:
        revisions.create_policy(actor=signed_in_actor(request), name=name, content=content)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:policies")
    return redirect("dashboards:policy", name)


@require_POST
@needs(Scope.POLICIES)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a policy that nothing uses."""
    try:
        revisions.delete_policy(actor=signed_in_actor(request), name=name)
    except ControlPlaneError as error:
        return refused(request, error, "dashboards:policy", name)
    messages.success(request, f"Policy {name} is deleted.")
    return redirect("dashboards:policies")


def _beginning(choice: str) -> Mapping[str, Any]:
    kind, _, name = choice.partition(":")
    if kind == "copy":
        live = _find(name).live
        return {} if live is None else live.content
    preset = next((preset for preset in PRESETS if kind == "preset" and preset.name == name), None)
    if preset is None:
        raise Http404
    return preset.content


def _write(request: HttpRequest, name: str, wish: str | None, editing: Editing) -> None:
    actor, content = signed_in_actor(request), read_content(editing.text)
    if wish == "draft":
        revisions.save_draft(actor=actor, name=name, content=content, expected=editing.expected)
        messages.success(request, "The draft is kept. What routes traffic stays as it is.")
    elif wish == "publish":
        made = revisions.publish(
            actor=actor, name=name, message=editing.message, expected=editing.expected, content=content
        )
        messages.success(request, f"{name}@{made.number} is published; workers take it over between two requests.")
    else:
        raise Http404


def _page(request: HttpRequest, policy: Policy, editing: Editing, status: int = 200) -> HttpResponse:
    context = {
        "policies": selectors.policies().prefetch_related("workloads"),
        "policy": policy,
        "editing": editing,
        "lines": field_lines(editing.faults),
        "loose_faults": loose_faults(editing.faults),
        "presets": PRESETS,
        "history": history(policy),
        "learnt": learnt_by_worker(policy.name),
        "live_number": live_number(policy),
        "convergence": convergence(),
        "recording": own_recording(),
        "may_change": may(request, Scope.POLICIES),
    }
    return render(request, "dashboards/policies/page.html", context, status=status)


def _find(name: str) -> Policy:
    try:
        return selectors.policy_named(name)
    except NotFound as error:
        raise Http404(str(error)) from error


def _number(request: HttpRequest, field: str = "expected") -> int:
    text = request.POST.get(field, "")
    if not text.isascii() or not text.isdigit():
        raise Http404
    return int(text)
