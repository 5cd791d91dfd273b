"""The life of a simulation, as a table.

It is *queued* when somebody asks for it, and *running* while a task worker has it. It ends *done* with a result,
*failed* with a reason, or *cancelled*. A worker that is stopped gives its run back. One that dies takes its run with
it: the sweep then queues the run again, and gives up when that has happened before. An end is an end; whoever wants
another run asks for a new one.
"""

from collections.abc import Mapping
from enum import StrEnum

from controlplane.errors import IllegalTransition


class State(StrEnum):
    """Where a simulation is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Event(StrEnum):
    """What can happen to a simulation."""

    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    RELEASE = "release"
    """The worker that had it is being stopped, and gives it back."""
    LOSE = "lose"
    """The worker that had it is gone; it will be tried again."""
    GIVE_UP = "give_up"
    """The worker that had it is gone, and not the first one."""


TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (State.QUEUED, Event.START): State.RUNNING,
    (State.QUEUED, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.FINISH): State.DONE,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.RELEASE): State.QUEUED,
    (State.RUNNING, Event.LOSE): State.QUEUED,
    (State.RUNNING, Event.GIVE_UP): State.FAILED,
}

ACTIVE = frozenset({State.QUEUED, State.RUNNING})
ENDED = frozenset(State) - ACTIVE


def next_state(state: State, event: Event) -> State:
    """Return where an event leads.

    :raises IllegalTransition: when it leads nowhere from here.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(
            f"{event.value} is not possible: the simulation is {state.value}.", state=state.value
        ) from None
