"""A kind of alert: what it means, what to do about it, and the pure function that finds it."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from controlplane.alerts.finding import Finding
from controlplane.alerts.settling import Patience
from controlplane.alerts.window import Window
from controlplane.errors import Invalid


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
        try:
            return msgspec.convert({**msgspec.to_builtins(self.limits), **changes}, type=type(self.limits))
        except msgspec.ValidationError as error:
            raise Invalid({"limits": [str(error)]}) from error
