"""On every page: whether what the pages show is still worked on."""

from typing import Any

from django import template

from controlplane.ops.standstill import tasks_stand_still_since

register = template.Library()


@register.inclusion_tag("dashboards/standstill.html")
def standstill() -> dict[str, Any]:
    """Say since when scheduled tasks stand still, if they do."""
    return {"since": tasks_stand_still_since()}
