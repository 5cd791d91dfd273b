"""Numbers, ages and moments as people read them; the scripts' ``format.js`` says the same."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from math import floor, log10

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

NONE = "–"
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number_filter(show: Callable[..., str]) -> Callable[..., str]:
    """Register a filter that is not asked where nobody said anything.

    A template hands over an empty text for what does not exist.
    """

    @wraps(show)
    def guarded(value: float | str | None, *arguments: int) -> str:
        return NONE if value is None or value == "" else show(value, *arguments)

    register.filter(show.__name__, guarded)
    return guarded


@number_filter
def integer(value: float) -> str:
    """Return a whole number with thousands apart: 7,204."""
    return f"{value:,.0f}"


@number_filter
def compact(value: float) -> str:
    """Return a number in three digits: 61.4k."""
    for size, suffix in _STEPS:
        if abs(value) >= size * 0.9995:
            return three_digits(value / size) + suffix
    return three_digits(value)


@number_filter
def times(value: float, digits: int = 2) -> str:
    """Return a ratio: 1.25×."""
    return f"{value:.{digits}f}×"


@number_filter
def ratio(value: float) -> str:
    """Return a ratio without a sign: 1.25."""
    return f"{value:.2f}"


@number_filter
def percent(share: float) -> str:
    """Return a share of 1 in percent: 71.4 %."""
    return f"{share * 100:.1f} %"


@number_filter
def share_width(share: float) -> str:
    """Return a share of 1 as the width of a bar that is 100 wide: 71.43."""
    return f"{share * 100:.2f}"


@number_filter
def rate(value: float) -> str:
    """Return a rate per second: 48.2."""
    return f"{value:.1f}"


@number_filter
def seconds(value: float) -> str:
    """Return a duration: 104 ms, 1.25 s, 12.3 s, 3,600 s; below 0.01 ms in microseconds."""
    if 0 < value < 1e-5:
        return f"{three_digits(value * 1e6)} µs"
    if value < 1:
        return f"{three_digits(value * 1000)} ms"
    return f"{three_digits(value)} s" if value < 100 else f"{value:,.0f} s"


@register.filter
def age(value: datetime | float | None) -> str:
    """Return how long ago a moment (or a number of seconds) is: 12 s, 5 min, 3 h, 2 d."""
    if value is None or value == "":
        return NONE
    passed_s = _passed_s(value) if isinstance(value, datetime) else value
    for unit_s, unit, most in ((1, "s", 120), (60, "min", 120), (3600, "h", 48)):
        if passed_s < most * unit_s:
            return f"{max(0.0, passed_s) / unit_s:.0f} {unit}"
    return f"{passed_s / 86400:.0f} d"


@register.filter
def since(value: datetime | None) -> str | SafeString:
    """Return the same as a time element that a script keeps true while the page stands: 12 s, 13 s, ..."""
    if value is None:
        return NONE
    at = value.astimezone(UTC).isoformat()
    return format_html('<time datetime="{}" data-age="{}">{}</time>', at, f"{_passed_s(value):.1f}", age(value))


@register.filter
def moment(value: datetime | float | None) -> str | SafeString:
    """Return a time element: UTC as text; a script adds local time on hover."""
    return _time(value, "%Y-%m-%d %H:%M:%S UTC")


@register.filter
def clock(value: datetime | float | None) -> str | SafeString:
    """Return the same, but only the time of day."""
    return _time(value, "%H:%M:%S")


def _passed_s(value: datetime) -> float:
    return (timezone.now() - value).total_seconds()


def _time(value: datetime | float | None, form: str) -> str | SafeString:
    if value is None:
        return NONE
    at = value.astimezone(UTC) if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), at.strftime(form))


def three_digits(value: float) -> str:
    """Return a number in the digits that count: 0.08, 1.25, 61.4, 545."""
    if value == 0:
        return "0"
    digits = max(0, 2 - floor(log10(abs(value))))
    text = f"{value:.{min(digits, 2)}f}"
    return f"{value:.0f}" if value == int(value) else text
