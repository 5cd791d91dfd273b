"""Which time a person asks the live page for: the newest minutes, or from one moment to another."""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

from dashboards.live_texts import RANGES

MOST_DAYS = 7
"""Longest time from one moment to another."""
_DAY_S = 86_400
_MINUTE_S = 60


class AskedRange(NamedTuple):
    """``from_s``: Unix seconds of where it begins; None for the newest minutes."""

    minutes: int
    from_s: int | None = None

    @property
    def until_s(self) -> int | None:
        """Return where it ends; None for now."""
        return None if self.from_s is None else self.from_s + self.minutes * _MINUTE_S


def asked_range(query: Mapping[str, str]) -> AskedRange:
    """Read ``minutes``, or ``from`` and ``to`` in whole Unix seconds.

    :raises ValueError: saying what to ask for instead.
    """
    begin, end = query.get("from", ""), query.get("to", "")
    if begin or end:
        return _between(_moment("from", begin), _moment("to", end))
    minutes = query.get("minutes", "")
    if minutes not in {str(one.minutes) for one in RANGES}:
        raise ValueError(f"minutes is one of {', '.join(str(one.minutes) for one in RANGES)}")
    return AskedRange(int(minutes))


def _between(from_s: int, to_s: int) -> AskedRange:
    if from_s >= to_s:
        raise ValueError("from is before to")
    if to_s - from_s > MOST_DAYS * _DAY_S:
        raise ValueError(f"from and to are at most {MOST_DAYS} days apart")
    return AskedRange(ceil((to_s - from_s) / _MINUTE_S), from_s)


def _moment(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ValueError(f"{name} is a moment in whole Unix seconds; from and to come together")
    return int(text)
