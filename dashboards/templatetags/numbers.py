"""Numbers, ages and moments as people read them; the scripts' ``format.js`` says the same."""

from datetime import UTC, datetime
from math import floor, log10

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

NONE = "–"
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@register.filter
def integer(value: float | None) -> str:
    """Return a whole number with thousands apart: 7,204."""
    return NONE if value is None else f"{value:,.0f}"


@register.filter
def compact(value: float | None) -> str:
    """Return a number in three digits: 61.4k."""
    if value is None:
        return NONE
    for size, suffix in _STEPS:
        if abs(value) >= size * 0.9995:
            return _three_digits(value / size) + suffix
    return _three_digits(value)


@register.filter
def times(value: float | None, digits: int = 2) -> str:
    """Return a ratio: 1.25×."""
    return NONE if value is None else f"{value:.{digits}f}×"


@register.filter
def percent(share: float | None) -> str:
    """Return a share of 1 in percent: 71.4 %."""
    return NONE if share is None else f"{share * 100:.1f} %"


@register.filter
def seconds(value: float | None) -> str:
    """Return a duration: 104 ms, 2.3 s."""
    if value is None:
        return NONE
    return f"{_three_digits(value * 1000)} ms" if value < 10 else f"{value:.1f} s"


@register.filter
def age(value: datetime | float | None) -> str:
    """Return how long ago a moment (or a number of seconds) is: 12 s, 5 min, 3 h, 2 d."""
    if value is None:
        return NONE
    passed_s = (timezone.now() - value).total_seconds() if isinstance(value, datetime) else value
    for unit_s, unit, most in ((1, "s", 120), (60, "min", 120), (3600, "h", 48)):
        if passed_s < most * unit_s:
            return f"{max(0.0, passed_s) / unit_s:.0f} {unit}"
    return f"{passed_s / 86400:.0f} d"


@register.filter
def moment(value: datetime | float | None) -> str | SafeString:
    """Return a time element: UTC as text; a script adds local time on hover."""
    return _time(value, "%Y-%m-%d %H:%M:%S UTC")


@register.filter
def clock(value: datetime | float | None) -> str | SafeString:
    """Return the same, but only the time of day."""
    return _time(value, "%H:%M:%S")


def _time(value: datetime | float | None, form: str) -> str | SafeString:
    if value is None:
        return NONE
    at = value.astimezone(UTC) if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), at.strftime(form))


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - floor(log10(abs(value))))
    text = f"{value:.{min(digits, 2)}f}"
    return f"{value:.0f}" if value == int(value) else text
