"""Tracing, as far as an exchange knows it; :mod:`router.proxy.tracing` implements it where traces are asked for."""

from typing import Protocol

from router.proxy.intake import Intake
from router.proxy.ledger import Ended
from router.proxy.usage import Usage
from router.proxy.wire.grammar import Fields


class RequestSpan(Protocol):
    """One request in a trace."""

    @property
    def traceparent(self) -> bytes:
        """What an engine is told, so that its own spans hang below this one."""
        ...

    def end(self, ended: Ended, attempts: int, usage: Usage | None) -> None:
        """The request has ended."""
        ...


class Tracer(Protocol):
    """Begins spans."""

    def begin(self, fields: Fields, intake: Intake) -> RequestSpan:
        """Begin the span of a request, below the one that its header fields name, if they name one."""
        ...
