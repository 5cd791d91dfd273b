"""Matchers: what a silence or a channel is about, as conditions on labels that must all hold.

They are written as in Alertmanager: ``name="value"``, ``!=``, ``=~`` and ``!~``; a regular expression must match the
whole value. A label that an alert lacks has the empty value.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controlplane.errors import Invalid

MAX_MATCHERS = 20
_MAX_VALUE = 256
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LINE = re.compile(r"(?P<label>[^=!~\s]+)\s*(?P<operator>=~|!~|!=|=)\s*(?P<value>.*)")
_RISKY = re.compile(r"[*+}]\s*\)\s*[*+{]")
"""A repetition of a repetition, which takes exponential time on the right text."""


class Operator(StrEnum):
    """How a label is compared."""

    EQUAL = "="
    NOT_EQUAL = "!="
    MATCHES = "=~"
    NOT_MATCHES = "!~"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on one label."""

    label: str
    operator: Operator
    value: str

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether some labels meet the condition."""
        present = labels.get(self.label, "")
        if self.operator in {Operator.EQUAL, Operator.NOT_EQUAL}:
            return (present == self.value) is (self.operator is Operator.EQUAL)
        return (re.fullmatch(self.value, present) is not None) is (self.operator is Operator.MATCHES)

    def __str__(self) -> str:
        return f'{self.label}{self.operator.value}"{self.value}"'


def all_hold(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Return whether every matcher holds; none at all always hold."""
    return all(matcher.holds(labels) for matcher in matchers)


def parse_matchers(items: object, field: str = "matchers") -> tuple[Matcher, ...]:
    """Return the matchers that some JSON stands for: a list of objects with ``label``, ``operator`` and ``value``.

    :raises Invalid: naming each fault.
    """
    if not isinstance(items, list):
        raise Invalid({field: ["It must be a list of matchers."]})
    if len(items) > MAX_MATCHERS:
        raise Invalid({field: [f"There are {len(items)}, but at most {MAX_MATCHERS} are possible."]})
    faults = [fault for position, item in enumerate(items, 1) for fault in _faults(position, item)]
    if faults:
        raise Invalid({field: faults})
    return tuple(Matcher(item["label"], Operator(item["operator"]), item["value"]) for item in items)


def parse_matcher_lines(text: str, field: str = "matchers") -> tuple[Matcher, ...]:
    """Return the matchers that a text stands for, one a line, as in ``instance=~"gpu-[12]"``; quotes may be left out.

    :raises Invalid: naming each fault.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    read = [_LINE.fullmatch(line) for line in lines]
    unread = [line for line, match in zip(lines, read, strict=True) if match is None]
    if unread:
        raise Invalid({field: [f"{line[:80]!r} is not of the form name=value." for line in unread]})
    items = [
        {"label": match["label"], "operator": match["operator"], "value": _unquoted(match["value"])}
        for match in read
        if match is not None
    ]
    return parse_matchers(items, field)


def dump_matchers(matchers: Iterable[Matcher]) -> list[dict[str, str]]:
    """Return matchers as JSON."""
    return [{"label": m.label, "operator": m.operator.value, "value": m.value} for m in matchers]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def _faults(position: int, item: Any) -> Iterable[str]:
    if not isinstance(item, Mapping) or not all(isinstance(item.get(k), str) for k in ("label", "operator", "value")):
        yield f"Matcher {position} must have label, operator and value, as texts."
        return
    if not _NAME.fullmatch(item["label"]):
        yield f"Matcher {position}: {item['label'][:40]!r} is no label name."
    if item["operator"] not in set(Operator):
        known = ", ".join(operator.value for operator in Operator)
        yield f"Matcher {position}: operator {item['operator'][:8]!r} is none of {known}."
    elif item["operator"] in {Operator.MATCHES, Operator.NOT_MATCHES}:
        yield from _pattern_faults(position, item["value"])
    if len(item["value"]) > _MAX_VALUE:
        yield f"Matcher {position}: the value has more than {_MAX_VALUE} characters."


def _pattern_faults(position: int, pattern: str) -> Iterable[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield f"Matcher {position}: the regular expression cannot be read: {error}."
    if _RISKY.search(pattern):
        yield f"Matcher {position}: a repetition of a repetition can take forever."
