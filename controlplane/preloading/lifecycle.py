"""The life of a preload, as a table.

It is *planned*, tried until it succeeds (*done*), is pointless by now (*skipped*), or has failed too often (*failed*).
A failure that may pass leaves it planned. Ends are for good: what is wanted again later is another preload.
"""

from collections.abc import Mapping
from enum import StrEnum

from controlplane.errors import IllegalTransition


class PreloadState(StrEnum):
    """Where a preload is."""

    PLANNED = "planned"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class PreloadEvent(StrEnum):
    """What can happen to it."""

    ARRIVED = "arrived"
    """The engine answered."""
    PUT_OFF = "put_off"
    """The instance is busy, or the router is away: later."""
    POINTLESS = "pointless"
    """The instance is gone or has the prefix, or nobody keeps the text any more."""
    GIVEN_UP = "given_up"


_S, _E = PreloadState, PreloadEvent
TRANSITIONS: Mapping[tuple[PreloadState, PreloadEvent], PreloadState] = {
    (_S.PLANNED, _E.ARRIVED): _S.DONE,
    (_S.PLANNED, _E.PUT_OFF): _S.PLANNED,
    (_S.PLANNED, _E.POINTLESS): _S.SKIPPED,
    (_S.PLANNED, _E.GIVEN_UP): _S.FAILED,
}


def next_state(state: PreloadState, event: PreloadEvent) -> PreloadState:
    """Return where an event leads.

    :raises IllegalTransition: when it leads nowhere from here.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"{event.value} is not possible while {state.value}.", state=state.value) from None
