"""The life of an alert, as a table.

An alert is *firing* from the moment its evidence has stood for long enough (see :mod:`controlplane.alerts.settling`).
While it fires, the same evidence changes nothing but when it was last seen: there is one open alert a fingerprint, and
the database holds to that.

Somebody who looks after it *acknowledges* it: it stays open and visible, and nobody is told again. An acknowledgement
may have an end, after which the alert fires again as if nobody had promised anything. Acknowledging twice is allowed,
because the second may name another end.

It is *resolved* when the evidence has been gone for long enough, or by somebody who says so. If the evidence comes
back soon, the same alert *recurs* rather than a new one beginning: a condition that flaps is one alert with a long
timeline, not a hundred alerts, and each recurrence makes the next resolution wait longer. Evidence that comes back
late begins a new alert; the old one stays resolved for good.

Comments, assignments and silences are no events of this table: they change who knows, never what is.

A pair that is missing in the table is impossible or wrong, and refused. A pair that leads where it came from changes
nothing, so that saying a thing twice does no harm.
"""

from collections.abc import Mapping
from enum import StrEnum

from controlplane.errors import IllegalTransition


class AlertState(StrEnum):
    """Where an alert is in its life."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class AlertEvent(StrEnum):
    """What can happen to an alert."""

    SEEN = "seen"
    """The evidence is still there."""
    ACKNOWLEDGE = "acknowledge"
    ACKNOWLEDGEMENT_EXPIRED = "acknowledgement_expired"
    CLEARED = "cleared"
    """The evidence has been gone for long enough."""
    RESOLVE = "resolve"
    """Somebody says that it is over."""
    RECURRED = "recurred"
    """The evidence came back soon after it was resolved."""


_S, _E = AlertState, AlertEvent
TRANSITIONS: Mapping[tuple[AlertState, AlertEvent], AlertState] = {
    (_S.FIRING, _E.SEEN): _S.FIRING,
    (_S.FIRING, _E.ACKNOWLEDGE): _S.ACKNOWLEDGED,
    (_S.FIRING, _E.CLEARED): _S.RESOLVED,
    (_S.FIRING, _E.RESOLVE): _S.RESOLVED,
    (_S.ACKNOWLEDGED, _E.SEEN): _S.ACKNOWLEDGED,
    (_S.ACKNOWLEDGED, _E.ACKNOWLEDGE): _S.ACKNOWLEDGED,
    (_S.ACKNOWLEDGED, _E.ACKNOWLEDGEMENT_EXPIRED): _S.FIRING,
    (_S.ACKNOWLEDGED, _E.CLEARED): _S.RESOLVED,
    (_S.ACKNOWLEDGED, _E.RESOLVE): _S.RESOLVED,
    (_S.RESOLVED, _E.RESOLVE): _S.RESOLVED,
    (_S.RESOLVED, _E.RECURRED): _S.FIRING,
}

OPEN = frozenset({AlertState.FIRING, AlertState.ACKNOWLEDGED})


def next_state(state: AlertState, event: AlertEvent) -> AlertState:
    """Return where an event leads.

    :raises IllegalTransition: when it leads nowhere from here.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        possible = ", ".join(sorted(e.value for s, e in TRANSITIONS if s is state))
        raise IllegalTransition(
            f"{event.value} is not possible while {state.value}; possible are: {possible}.", state=state.value
        ) from None
