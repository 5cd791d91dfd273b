"""How series are told apart: a colour and a dash (or a marker) each, never by colour alone.

The first series is amber, the one to look at; the others have colours that colour-blind people can tell apart. The
colours are tokens of the laboratory's style sheet, one set for dark and one for light.
"""

from typing import Any

Figure = dict[str, Any]

COLORS = tuple(f"token:series{number}" for number in range(1, 11))
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
LEGEND: Figure = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0}


def line_of(position: int) -> Figure:
    """Return colour and dash of a series; forty differ."""
    return {"color": color_of(position), "dash": DASHES[position // len(COLORS) % len(DASHES)], "width": 1.75}


def marker_of(position: int, size: int = 10) -> Figure:
    """Return colour and shape of a series' marks."""
    return {"color": color_of(position), "symbol": SYMBOLS[position % len(SYMBOLS)], "size": size}


def color_of(position: int) -> str:
    """Return the colour of a series."""
    return COLORS[position % len(COLORS)]
