"""What the REST schema says of a field: ``{% help "workload.policy" %}``, and ``plain_help`` for attributes."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboards.field_help import field_help

register = template.Library()
_CODE = re.compile(r"`([^`]+)`")


@register.simple_tag(name="help")
def help_of(path: str) -> SafeString:
    """Return the text, with what stands between backquotes as code."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(field_help(path))))  # noqa: S308  # escaped before


@register.simple_tag
def plain_help(path: str) -> str:
    """Return the text without marks."""
    return field_help(path).replace("`", "")
