"""The rail on the left."""

from typing import Any

from django import template
from django.urls import reverse

from dashboards.access import may
from dashboards.navigation import PLACES

register = template.Library()


@register.inclusion_tag("dashboards/rail.html", takes_context=True)
def rail(context: dict[str, Any]) -> dict[str, Any]:
    """Render the places, the present one marked."""
    request = context["request"]
    path = request.path
    entries = [(place, reverse(place.url_name)) for place in PLACES if may(request, place.scope)]
    return {
        "entries": [(place, url, path == url or (url != "/" and path.startswith(url))) for place, url in entries],
        "user": context.get("user"),
        "csrf_token": context.get("csrf_token"),
    }
