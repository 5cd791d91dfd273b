"""A kind of alert: what it means, what to do about it, and the pure function that finds it."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Protocol

import msgspec
import msgspec.inspect

from controlplane.alerts.finding import Finding
from controlplane.alerts.settling import Patience
from controlplane.alerts.window import Window
from controlplane.errors import Invalid
from controlplane.field_docs import field_docs


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the limits of a kind: numbers that an operator may change, with units in their names."""


class Evaluator(Protocol):
    """A pure function; the same window and limits always give the same findings."""

    def __call__(self, window: Window, limits: Any) -> Iterator[Finding]:
        """Return the evidence in a window."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. ``title`` is a short name, ``meaning`` a sentence or two, ``what_to_do`` the steps in order."""

    name: str
    title: str
    meaning: str
    what_to_do: tuple[str, ...]
    evaluate: Evaluator
    limits: Limits
    patience: Patience

    def limits_with(self, changes: Mapping[str, Any]) -> Limits:
        """Return the limits with some of them changed.

        :raises Invalid: for a limit that does not exist or cannot be.
        """
        kinds = _types_of(type(self.limits))
        faults: dict[str, list[str]] = {}
        for name, value in changes.items():
            if name not in kinds:
                faults[f"limits.{name}"] = [f"There is no such limit; there are: {', '.join(kinds) or 'none'}."]
            elif not _fits(type(self.limits), name, value):
                faults[f"limits.{name}"] = [f"It must be {_range(kinds[name])}."]
        if faults:
            raise Invalid(faults)
        return msgspec.convert({**msgspec.to_builtins(self.limits), **changes}, type=type(self.limits))

    @property
    def limit_docs(self) -> Mapping[str, str]:
        """What each limit means, and what it may be; in the words of its class."""
        docs = field_docs(type(self.limits))
        kinds = _types_of(type(self.limits))
        return {name: f"{docs[name]} {_range(kind).capitalize()}." for name, kind in kinds.items()}


def _types_of(limits: type[Limits]) -> Mapping[str, msgspec.inspect.Type]:
    found = msgspec.inspect.type_info(limits)
    assert isinstance(found, msgspec.inspect.StructType)
    return {field.name: field.type for field in found.fields}


def _fits(limits: type[Limits], name: str, value: Any) -> bool:
    try:
        msgspec.convert({name: value}, type=limits)
    except msgspec.ValidationError:
        return False
    return isfinite(value)


def _range(kind: Any) -> str:
    """Say what a number may be: a whole number of at least 1."""
    is_whole = isinstance(kind, msgspec.inspect.IntType)
    ends = (
        (kind.ge, "at least {:g}"),
        (kind.gt, "above {:g}"),
        (kind.le, "at most {:g}"),
        (kind.lt, "below {:g}"),
    )
    bounds = " and ".join(words.format(end) for end, words in ends if end is not None)
    of = " of " if bounds.startswith("at") else " "
    return f"{'a whole number' if is_whole else 'a number'}{of}{bounds}".strip()
