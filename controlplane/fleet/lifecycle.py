"""The life of an instance, as a table.

An instance is *registered* by somebody and *probed* at once. The first probe that succeeds makes it *warming*: it takes
requests, but its cache is cold, and policies may go easy on it. After a while it is *ready*. So far the table only
follows the engine.

People, and spot notices, take it out again. *Draining* takes no new request and keeps those in flight; when routers
report none any more it is *drained* and can be removed or worked on without anyone noticing. *Maintenance* is the same
at once, without waiting. Both are somebody's wish, so probes never end them: an engine that is restarted while it is
drained stays drained until somebody says *undrain*, and then has to pass a probe like a new one.

An engine that fails several probes in a row (one is never enough), or whose lease ran out, is *unreachable*: out of
rotation, still probed. Several good probes in a row bring it back: *ready* where the same process still holds its
cache, *warming* where it was restarted. An instance that moves to another address starts over.

*Removed* is the end. A name may be used again then, but that is another instance with an identity of its own, so that
nothing learnt about the old one is believed of the new one.

A pair that is missing in the table is impossible or wrong, and refused; a pair that leads to the state it came from
changes nothing, so that saying a thing twice does no harm.
"""

from collections.abc import Mapping
from enum import StrEnum

from controlplane.errors import IllegalTransition
from router.core.instance import InstanceState as S


class Event(StrEnum):
    """What can happen to an instance."""

    PROBE = "probe"
    """A probe of it has begun."""
    UP = "up"
    """Enough probes in a row succeeded, and the engine's cache is new or unknown."""
    RETURNED = "returned"
    """Enough probes in a row succeeded, and it is the same engine process as before."""
    RESTARTED = "restarted"
    """A probe succeeded, but the engine process is another one than before."""
    DOWN = "down"
    """Enough probes in a row failed."""
    WARMED = "warmed"
    """It has taken requests for long enough to have a warm cache."""
    LEASE_EXPIRED = "lease_expired"
    LEASE_RENEWED = "lease_renewed"
    READDRESSED = "readdressed"
    """Its URL was changed."""
    DRAIN = "drain"
    IDLE = "idle"
    """Every router reports that nothing is in flight there."""
    UNDRAIN = "undrain"
    MAINTAIN = "maintain"
    REMOVE = "remove"


TRANSITIONS: Mapping[tuple[S, Event], S] = {
    (S.REGISTERED, Event.PROBE): S.PROBING,
    (S.REGISTERED, Event.UP): S.WARMING,
    (S.REGISTERED, Event.DOWN): S.UNREACHABLE,
    (S.REGISTERED, Event.LEASE_EXPIRED): S.UNREACHABLE,
    (S.REGISTERED, Event.READDRESSED): S.REGISTERED,
    (S.REGISTERED, Event.DRAIN): S.DRAINED,
    (S.REGISTERED, Event.UNDRAIN): S.REGISTERED,
    (S.REGISTERED, Event.MAINTAIN): S.MAINTENANCE,
    (S.REGISTERED, Event.REMOVE): S.REMOVED,
    (S.PROBING, Event.PROBE): S.PROBING,
    (S.PROBING, Event.UP): S.WARMING,
    (S.PROBING, Event.DOWN): S.UNREACHABLE,
    (S.PROBING, Event.LEASE_EXPIRED): S.UNREACHABLE,
    (S.PROBING, Event.READDRESSED): S.REGISTERED,
    (S.PROBING, Event.DRAIN): S.DRAINED,
    (S.PROBING, Event.UNDRAIN): S.PROBING,
    (S.PROBING, Event.MAINTAIN): S.MAINTENANCE,
    (S.PROBING, Event.REMOVE): S.REMOVED,
    (S.WARMING, Event.WARMED): S.READY,
    (S.WARMING, Event.RESTARTED): S.WARMING,
    (S.WARMING, Event.DOWN): S.UNREACHABLE,
    (S.WARMING, Event.LEASE_EXPIRED): S.UNREACHABLE,
    (S.WARMING, Event.READDRESSED): S.REGISTERED,
    (S.WARMING, Event.DRAIN): S.DRAINING,
    (S.WARMING, Event.UNDRAIN): S.WARMING,
    (S.WARMING, Event.MAINTAIN): S.MAINTENANCE,
    (S.WARMING, Event.REMOVE): S.REMOVED,
    (S.READY, Event.RESTARTED): S.WARMING,
    (S.READY, Event.DOWN): S.UNREACHABLE,
    (S.READY, Event.LEASE_EXPIRED): S.UNREACHABLE,
    (S.READY, Event.READDRESSED): S.REGISTERED,
    (S.READY, Event.DRAIN): S.DRAINING,
    (S.READY, Event.UNDRAIN): S.READY,
    (S.READY, Event.MAINTAIN): S.MAINTENANCE,
    (S.READY, Event.REMOVE): S.REMOVED,
    (S.DRAINING, Event.IDLE): S.DRAINED,
    (S.DRAINING, Event.DOWN): S.DRAINED,
    (S.DRAINING, Event.LEASE_EXPIRED): S.DRAINED,
    (S.DRAINING, Event.READDRESSED): S.DRAINED,
    (S.DRAINING, Event.RESTARTED): S.DRAINED,
    (S.DRAINING, Event.DRAIN): S.DRAINING,
    (S.DRAINING, Event.UNDRAIN): S.WARMING,
    (S.DRAINING, Event.MAINTAIN): S.MAINTENANCE,
    (S.DRAINING, Event.REMOVE): S.REMOVED,
    (S.DRAINED, Event.READDRESSED): S.DRAINED,
    (S.DRAINED, Event.RESTARTED): S.DRAINED,
    (S.DRAINED, Event.DRAIN): S.DRAINED,
    (S.DRAINED, Event.UNDRAIN): S.PROBING,
    (S.DRAINED, Event.MAINTAIN): S.MAINTENANCE,
    (S.DRAINED, Event.REMOVE): S.REMOVED,
    (S.MAINTENANCE, Event.READDRESSED): S.MAINTENANCE,
    (S.MAINTENANCE, Event.RESTARTED): S.MAINTENANCE,
    (S.MAINTENANCE, Event.DRAIN): S.DRAINED,
    (S.MAINTENANCE, Event.UNDRAIN): S.PROBING,
    (S.MAINTENANCE, Event.MAINTAIN): S.MAINTENANCE,
    (S.MAINTENANCE, Event.REMOVE): S.REMOVED,
    (S.UNREACHABLE, Event.UP): S.WARMING,
    (S.UNREACHABLE, Event.RETURNED): S.READY,
    (S.UNREACHABLE, Event.DOWN): S.UNREACHABLE,
    (S.UNREACHABLE, Event.LEASE_EXPIRED): S.UNREACHABLE,
    (S.UNREACHABLE, Event.LEASE_RENEWED): S.PROBING,
    (S.UNREACHABLE, Event.READDRESSED): S.REGISTERED,
    (S.UNREACHABLE, Event.DRAIN): S.DRAINED,
    (S.UNREACHABLE, Event.UNDRAIN): S.UNREACHABLE,
    (S.UNREACHABLE, Event.MAINTAIN): S.MAINTENANCE,
    (S.UNREACHABLE, Event.REMOVE): S.REMOVED,
}

JOINING = frozenset({S.REGISTERED, S.PROBING})
"""Not yet in rotation, and one good probe away from it."""
SERVING = frozenset({S.WARMING, S.READY, S.DRAINING})
"""Requests may be in flight there."""
PROBED = frozenset(S) - {S.REMOVED}
"""States in which an instance is probed (the result is shown even where it changes nothing)."""


def next_state(state: S, event: Event) -> S:
    """Return where an event leads.

    :raises IllegalTransition: when it leads nowhere from here.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        possible = ", ".join(sorted(e.value for s, e in TRANSITIONS if s is state)) or "none"
        raise IllegalTransition(
            f"{event.value} is not possible while {state.value}; possible are: {possible}.", state=state.value
        ) from None


def possible(state: S, event: Event) -> bool:
    """Return whether the table has a move for an event."""
    return (state, event) in TRANSITIONS
