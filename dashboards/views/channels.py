"""Channels: where notifications go, and what became of them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import Actor
from controlplane.alerts import selectors
from controlplane.alerts.models import Channel, ChannelKind
from controlplane.alerts.services import channels
from controlplane.errors import Conflict, ControlPlaneError, Invalid, NotFound
from dashboards.access import may, needs, signed_in_actor
from dashboards.forms.channel_form import CHANNEL_FORMS, ChannelForm

LOG_ROWS = 50
KIND_WORDS = (
    (ChannelKind.WEBHOOK, "webhook"),
    (ChannelKind.SLACK, "Slack channel"),
    (ChannelKind.EMAIL, "e-mail"),
)


@require_safe
@login_required
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """List all channels."""
    return render(request, "dashboards/alerts/channels.html", _listed(request))


@require_safe
@login_required
@never_cache
def detail(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Show one channel with its delivery log beside the list."""
    channel = _find(channel_id)
    context = _listed(request) | {"one": channel, "form": CHANNEL_FORMS[channel.kind](channel=channel)} | _log(channel)
    return render(request, "dashboards/alerts/channels.html", context)


@require_safe
@login_required
@never_cache
def log(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Return the delivery log alone; the page asks for it again and again."""
    return render(request, "dashboards/alerts/deliveries.html", _log(_find(channel_id)))


@require_http_methods(["GET", "POST"])
@needs(Scope.ALERTS)
@never_cache
def create(request: HttpRequest, kind: str) -> HttpResponse:
    """Make a channel of a kind."""
    if kind not in CHANNEL_FORMS:
        raise Http404
    form = CHANNEL_FORMS[kind](request.POST or None)
    if request.method == "POST" and form.is_valid():
        channel = _saved(form, signed_in_actor(request), None)
        if channel is not None:
            messages.success(request, f"{channel.name} is there. Press “Send a test” to see whether it works.")
            return redirect("dashboards:channel", channel.pk)
    context = _listed(request) | {"new": kind, "new_words": dict(KIND_WORDS)[ChannelKind(kind)], "form": form}
    return render(request, "dashboards/alerts/channels.html", context, status=400 if form.errors else 200)


@require_POST
@needs(Scope.ALERTS)
def change(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Change a channel; secrets that are left empty stay."""
    channel = _find(channel_id)
    form = CHANNEL_FORMS[channel.kind](request.POST, channel)
    if form.is_valid() and _saved(form, signed_in_actor(request), channel) is not None:
        messages.success(request, f"{channel.name} is changed.")
        return redirect("dashboards:channel", channel_id)
    context = _listed(request) | {"one": channel, "form": form} | _log(channel)
    return render(request, "dashboards/alerts/channels.html", context, status=400)


@require_POST
@needs(Scope.ALERTS)
def act(request: HttpRequest, channel_id: UUID, action: str) -> HttpResponse:
    """Send a test, enable, disable, remove."""
    actor, channel = signed_in_actor(request), _find(channel_id)
    try:
        match action:
            case "test":
                channels.try_channel(actor=actor, channel_id=channel.pk)
            case "enable":
                channels.enable_channel(actor=actor, channel_id=channel.pk)
            case "disable":
                channels.disable_channel(actor=actor, channel_id=channel.pk, reason="")
            case "remove":
                channels.remove_channel(actor=actor, channel_id=channel.pk)
                messages.success(request, f"{channel.name} is removed.")
                return redirect("dashboards:channels")
            case _:
                raise Http404
    except ControlPlaneError as error:
        messages.error(request, str(error))
    return redirect("dashboards:channel", channel_id)


def _saved(form: ChannelForm, actor: Actor, channel: Channel | None) -> Channel | None:
    """Save what a form says; show what is wrong at its fields, and return None then."""
    try:
        if channel is None:
            return channels.create_channel(actor=actor, spec=form.spec())
        return channels.change_channel(actor=actor, channel_id=channel.pk, spec=form.spec())
    except Invalid as error:
        form.add_faults(error.fields)
    except Conflict as error:
        form.add_faults({"name": [str(error)]})
    return None


def _find(channel_id: UUID) -> Channel:
    try:
        return selectors.channel(channel_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _listed(request: HttpRequest) -> dict[str, Any]:
    return {
        "channels": selectors.channels(),
        "kinds": [(kind.value, words) for kind, words in KIND_WORDS],
        "may_handle": may(request, Scope.ALERTS),
    }


def _log(channel: Channel) -> dict[str, Any]:
    return {"one": channel, "deliveries": selectors.deliveries(channel.pk)[:LOG_ROWS]}
