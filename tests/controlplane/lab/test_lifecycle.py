"""The life of a simulation."""

from itertools import product

import pytest

from controlplane.errors import IllegalTransition
from controlplane.lab.lifecycle import ACTIVE, ENDED, TRANSITIONS, Event, State, next_state


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_a_pair_is_in_the_table_or_refused(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition, match=f"the simulation is {state.value}"):
            next_state(state, event)


def test_an_end_is_an_end() -> None:
    assert not [state for state, _ in TRANSITIONS if state in ENDED]


def test_every_state_can_be_reached_and_every_active_one_left() -> None:
    assert set(TRANSITIONS.values()) == set(State)
    assert {state for state, _ in TRANSITIONS} == ACTIVE
