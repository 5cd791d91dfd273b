"""The life-cycle table, whole."""

import pytest

from controlplane.alerts.lifecycle import OPEN, TRANSITIONS, AlertEvent, AlertState, next_state
from controlplane.errors import IllegalTransition

F, A, R = AlertState.FIRING, AlertState.ACKNOWLEDGED, AlertState.RESOLVED
E = AlertEvent
EXPECTED = {
    (F, E.SEEN): F,
    (F, E.ACKNOWLEDGE): A,
    (F, E.ACKNOWLEDGEMENT_EXPIRED): None,
    (F, E.CLEARED): R,
    (F, E.RESOLVE): R,
    (F, E.RECURRED): None,
    (A, E.SEEN): A,
    (A, E.ACKNOWLEDGE): A,
    (A, E.ACKNOWLEDGEMENT_EXPIRED): F,
    (A, E.CLEARED): R,
    (A, E.RESOLVE): R,
    (A, E.RECURRED): None,
    (R, E.SEEN): None,
    (R, E.ACKNOWLEDGE): None,
    (R, E.ACKNOWLEDGEMENT_EXPIRED): None,
    (R, E.CLEARED): None,
    (R, E.RESOLVE): R,
    (R, E.RECURRED): F,
}


def test_every_pair_is_decided() -> None:
    assert EXPECTED.keys() == {(state, event) for state in AlertState for event in AlertEvent}


@pytest.mark.parametrize(("state", "event"), EXPECTED)
def test_each_pair_leads_where_it_should(state: AlertState, event: AlertEvent) -> None:
    expected = EXPECTED[state, event]
    if expected is not None:
        assert next_state(state, event) is expected
        return
    with pytest.raises(IllegalTransition) as refused:
        next_state(state, event)
    assert f"{event.value} is not possible while {state.value}" in str(refused.value)
    assert refused.value.extra == {"state": state.value}


def test_every_state_can_be_left_and_reached() -> None:
    for state in AlertState:
        assert any(after is not state for (before, _), after in TRANSITIONS.items() if before is state)
        assert any(before is not state for (before, _), after in TRANSITIONS.items() if after is state)


def test_only_resolved_is_not_open() -> None:
    assert set(AlertState) - OPEN == {R}
