"""How series are told apart: a colour and a dash (or a marker) each, never by colour alone.

The first series is amber, the one to look at; the others have colours that colour-blind people can tell apart. The
colours are tokens of the laboratory's style sheet, one set for dark and one for light.

A series has a place: its position among the others, unless the caller says otherwise. Places that are a whole number of
palettes apart have the same colour and differ in dash, shape and filling: the same policy in two runs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Figure = dict[str, Any]

COLORS = tuple(f"token:series{number}" for number in range(1, 11))
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
LEGEND: Figure = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0}


Places = Mapping[str, int]


def placed(names: Iterable[str], places: Places | None) -> dict[str, int]:
    """Return the place of each series."""
    return {name: position if places is None else places[name] for position, name in enumerate(names)}


def line_of(position: int) -> Figure:
    """Return colour and dash of a series; forty differ."""
    return {"color": color_of(position), "dash": DASHES[position // len(COLORS) % len(DASHES)], "width": 1.75}


def marker_of(position: int, size: int = 10) -> Figure:
    """Return colour and shape of a series' marks."""
    return {"color": color_of(position), "symbol": SYMBOLS[position % len(SYMBOLS)], "size": size}


def bar_of(position: int) -> Figure:
    """Return colour and filling of a series' bars: full, or its outline alone from the second palette on."""
    color = color_of(position)
    hollow = position >= len(COLORS)
    return {"color": "token:surface" if hollow else color, "line": {"color": color, "width": 2 if hollow else 0}}


def color_of(position: int) -> str:
    """Return the colour of a series."""
    return COLORS[position % len(COLORS)]
