"""A policy's preview by simulation: on what routers recorded, on the instances that there are, beside what is live."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from controlplane.errors import Conflict, Invalid
from controlplane.fleet.models import Instance
from controlplane.lab import selectors, tasks
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation
from controlplane.lab.own_traffic import own_minutes, own_recording
from controlplane.lab.replay_result import replay_result
from controlplane.lab.services.previews import EDITED, preview_policy
from controlplane.lab.services.simulations import create_simulation
from router.core.instance import InstanceState
from tests.controlplane.conftest import ACTOR
from tests.controlplane.lab.recorded import BLOCK_TOKENS, record_own_traffic

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def fleet(db: None, settings: Any, tmp_path: Path) -> None:
    """Four instances that take requests, one that does not, and a data directory without recordings."""
    settings.DATA_DIR = tmp_path
    for number in range(5):
        state = InstanceState.READY if number else InstanceState.DRAINING
        url = f"http://10.0.0.{number + 1}:8000"
        now = timezone.now()
        Instance.objects.create(name=f"gpu-{number}", url=url, state=state, state_since=now, probe_due_at=now)


def preview(**content: float | str) -> Simulation:
    return preview_policy(actor=ACTOR, name="default", content=content, minutes=5)


def test_both_runs_stand_side_by_side_with_the_instances_own_names() -> None:
    record_own_traffic()
    made = preview(scorer="round_robin")
    tasks.work()
    made.refresh_from_db()
    assert (made.life, made.reason) == (State.DONE, "")
    found = replay_result(selectors.comparison(made.pk))
    assert [one.instance for one in found.shares] == ["gpu-1", "gpu-2", "gpu-3", "gpu-4"]
    assert found.live == "default@1"
    assert found.recorded == 200
    assert found.requests == sum(one.before for one in found.shares) == sum(one.after for one in found.shares) == 160
    assert sum(one.after_share for one in found.shares) == pytest.approx(1)
    assert 0 < found.moved <= found.requests
    assert found.before.hit_ratio > 0.5
    assert found.before.ttft_s.mean > 0
    assert found.after != found.before
    assert found.held_tokens == 4 * 5 * 39 * BLOCK_TOKENS, "every instance held all five kinds, to within a block"
    assert found.recorded_hit_ratio == pytest.approx(40 / 42)


def test_an_edit_that_changes_nothing_moves_nothing() -> None:
    record_own_traffic()
    made = preview(a=1.0)
    tasks.work()
    found = replay_result(selectors.comparison(made.pk))
    assert found.moved == 0
    assert found.before == found.after


def test_what_several_workers_recorded_is_played_together() -> None:
    record_own_traffic(60, "router-0")
    record_own_traffic(60, "router-1")
    made = preview(a=2.0)
    tasks.work()
    assert replay_result(selectors.comparison(made.pk)).recorded == 120


def test_without_a_recording_it_says_how_to_get_one() -> None:
    assert own_recording() is None
    with pytest.raises(Conflict, match="POINTSMAN_RECORD"):
        preview(a=2.0)


def test_without_instances_there_is_nothing_to_play_on() -> None:
    record_own_traffic()
    Instance.objects.update(state=InstanceState.MAINTENANCE)
    with pytest.raises(Conflict, match="No instance"):
        preview(a=2.0)


def test_content_that_cannot_be_is_refused_at_once() -> None:
    record_own_traffic()
    with pytest.raises(Invalid, match="a is -1"):
        preview(a=-1.0)
    with pytest.raises(Invalid, match="from 1 to 60"):
        preview_policy(actor=ACTOR, name="default", content={}, minutes=61)


def test_a_newer_preview_of_the_same_person_takes_the_place_of_one_that_waits() -> None:
    record_own_traffic()
    first, second = preview(a=2.0), preview(a=3.0)
    first.refresh_from_db()
    assert (first.life, second.life) == (State.CANCELLED, State.QUEUED)
    assert second.contents[EDITED] == {"a": 3.0}
    assert selectors.last_preview("default") == second


def test_a_recording_that_is_too_old_fails_with_the_reason() -> None:
    record_own_traffic(seconds=600.0, requests=2)
    made = preview_policy(actor=ACTOR, name="default", content={}, minutes=1)
    tasks.work()
    made.refresh_from_db()
    assert made.life is State.FAILED
    assert "no router worker has recorded a request in that time" in made.reason


def test_the_lab_takes_own_traffic_too() -> None:
    settings = {"trace": "own:5", "policies": ["multiplicative"], "fleet": "a100-80g:2"}
    with pytest.raises(Invalid, match="has recorded anything"):
        create_simulation(actor=ACTOR, settings=settings)
    record_own_traffic()
    made = create_simulation(actor=ACTOR, settings=settings)
    tasks.work()
    made.refresh_from_db()
    assert (made.life, made.trace_name) == (State.DONE, "own traffic, 5 min")
    found = selectors.comparison(made.pk)
    assert (found.provenance.requests, found.placements) == (200, ())


@pytest.mark.parametrize(
    ("choice", "minutes"), [("own:10", 10), ("own:0", None), ("own:61", None), ("own:", None), ("chatbot", None)]
)
def test_minutes_of_own_traffic_are_bounded(choice: str, minutes: int | None) -> None:
    assert own_minutes(choice) == minutes
