"""Axes of durations: ticks at 1, 2 and 5 of each decade, written with the unit that suits them."""

from math import ceil, floor, log10

from dashboards.plots.series import Figure

_MOST_TICKS = 8


def logarithmic_time_axis(title: str, low_s: float, high_s: float) -> Figure:
    """Return a logarithmic axis from a little below ``low_s`` to a little above ``high_s`` (both above 0)."""
    low, high = low_s * 0.92, high_s * 1.08
    ticks = _ticks(low, high, (1, 2, 5))
    if len(ticks) > _MOST_TICKS:
        ticks = _ticks(low, high, (1, 3))
    if len(ticks) > _MOST_TICKS:
        ticks = _ticks(low, high, (1,))
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


def _ticks(low: float, high: float, digits: tuple[int, ...]) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    values = [round(digit * 10.0**decade, 9) for decade in decades for digit in digits]
    return [value for value in values if low <= value <= high]
