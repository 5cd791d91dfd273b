"""The rail on the left."""

from typing import Any

from django import template
from django.urls import reverse

from dashboards.navigation import PLACES

register = template.Library()


@register.inclusion_tag("dashboards/rail.html", takes_context=True)
def rail(context: dict[str, Any]) -> dict[str, Any]:
    """Render the places, the present one marked."""
    path = context["request"].path
    entries = [(place, reverse(place.url_name)) for place in PLACES]
    return {
        "entries": [(place, url, path == url or (url != "/" and path.startswith(url))) for place, url in entries],
        "user": context.get("user"),
        "csrf_token": context.get("csrf_token"),
    }
