"""The life-cycle is exactly this table, and nothing else is possible."""

import itertools

import pytest

from controlplane.errors import IllegalTransition
from controlplane.fleet.lifecycle import TRANSITIONS, Event, next_state, possible
from router.core.instance import ROUTABLE_STATES, InstanceState

S = InstanceState


@pytest.mark.parametrize(("state", "event"), list(itertools.product(S, Event)))
def test_every_pair_either_leads_somewhere_or_is_refused(state: InstanceState, event: Event) -> None:
    if possible(state, event):
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition, match=event.value):
            next_state(state, event)


def test_removed_is_the_end() -> None:
    assert not any(state is S.REMOVED for state, _ in TRANSITIONS)


@pytest.mark.parametrize("state", [s for s in S if s is not S.REMOVED])
def test_every_living_instance_can_be_removed_drained_and_put_into_maintenance(state: InstanceState) -> None:
    assert next_state(state, Event.REMOVE) is S.REMOVED
    assert next_state(state, Event.DRAIN) in {S.DRAINING, S.DRAINED}
    assert next_state(state, Event.MAINTAIN) is S.MAINTENANCE


@pytest.mark.parametrize("state", [S.DRAINING, S.DRAINED, S.MAINTENANCE])
@pytest.mark.parametrize("event", [Event.UP, Event.RETURNED, Event.WARMED, Event.PROBE, Event.LEASE_RENEWED])
def test_no_probe_ends_what_somebody_wished(state: InstanceState, event: Event) -> None:
    assert not possible(state, event)


def test_only_a_success_of_a_probe_or_a_person_brings_an_instance_into_rotation() -> None:
    ways_in = {event for (before, event), after in TRANSITIONS.items() if after in ROUTABLE_STATES - {before}}
    assert ways_in - {Event.WARMED, Event.RESTARTED} == {Event.UP, Event.RETURNED, Event.UNDRAIN}


@pytest.mark.parametrize("event", [Event.DRAIN, Event.MAINTAIN, Event.DOWN, Event.UNDRAIN])
def test_saying_it_twice_changes_nothing(event: Event) -> None:
    for state in S:
        if possible(state, event) and possible(once := next_state(state, event), event):
            twice = next_state(once, event)
            assert next_state(twice, event) is twice
