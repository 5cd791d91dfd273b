"""Axes of durations: as many ticks as fit at round numbers, written with the unit that suits them."""

from math import ceil, floor, log10

from dashboards.plots.series import Figure

_MOST_TICKS = 8
_DIGITS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)
"""Where ticks may stand in a decade, the most first."""


def logarithmic_time_axis(title: str, low_s: float, high_s: float) -> Figure:
    """Return a logarithmic axis from a little below ``low_s`` to a little above ``high_s`` (both above 0)."""
    low, high = low_s * 0.92, high_s * 1.08
    ticks = next((found for found in (_ticks(low, high, d) for d in _DIGITS) if len(found) <= _MOST_TICKS), [])
    return {
        "title": {"text": title},
        "type": "log",
        "range": [round(log10(low), 6), round(log10(high), 6)],
        "tickvals": ticks,
        "ticktext": [duration(tick) for tick in ticks],
    }


def duration(value_s: float) -> str:
    """Return a duration in three digits: 12 ms, 1.5 s."""
    return f"{value_s * 1000:.3g} ms" if value_s < 1 else f"{value_s:.3g} s"


def _ticks(low: float, high: float, digits: tuple[float, ...]) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    values = [round(digit * 10.0**decade, 9) for decade in decades for digit in digits]
    return [value for value in values if low <= value <= high]
