"""Asking for simulations, claiming, settling, cancelling, losing them."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone

from controlplane.accounts.models import AuditEntry
from controlplane.errors import Conflict, IllegalTransition, Invalid, NotFound
from controlplane.lab import tasks
from controlplane.lab.child.order import Piece, Progress
from controlplane.lab.execution import order_of
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation, SimulationResult
from controlplane.lab.services import claims, drafts, keeping, simulations
from controlplane.lab.storage import runs_folder, traces_folder
from controlplane.policies.models import Policy
from tests.controlplane.conftest import ACTOR

Ask = Callable[..., Simulation]
pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_asking_queues_rings_and_is_recorded(ask: Ask, no_broker: list[tuple[str, tuple[object, ...]]]) -> None:
    made = ask()
    assert made.life is State.QUEUED
    made.refresh_from_db()
    assert list(made.contents.items()) == [("multiplicative", {}), ("vllm", {"scorer": "vllm"})]
    assert ("lab.work", ()) in no_broker
    assert AuditEntry.objects.get(action="simulation.create").object_id == str(made.pk)


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"trace": "poetry"}, "trace"), ({"trace": str(uuid4())}, "trace"), ({"policies": ["oracle"]}, "policies")],
)
def test_what_cannot_be_run_is_not_queued(ask: Ask, changes: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        ask(**changes)
    assert list(caught.value.fields) == [field]
    assert not Simulation.objects.exists()


def test_too_many_are_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "_MOST_QUEUED", 1)
    ask()
    with pytest.raises(Conflict, match="cancel some"):
        ask()


def test_one_at_a_time_oldest_first(ask: Ask) -> None:
    first, second = ask(), ask()
    claimed = claims.claim_next(concurrent=1)
    assert claimed is not None
    assert (claimed.pk, claimed.life, claimed.attempts) == (first.pk, State.RUNNING, 1)
    assert claims.claim_next(concurrent=1) is None
    assert claims.fail(claimed, "Bad luck.")
    again = claims.claim_next(concurrent=1)
    assert again is not None
    assert again.pk == second.pk


def test_progress_is_kept_and_shown(ask: Ask) -> None:
    made = ask()
    claimed = claims.claim_next(1)
    assert claimed is not None
    assert claims.still_mine(claimed, Progress(phase="running", pieces=(Piece("a", 1000), Piece("b", 500))))
    made.refresh_from_db()
    assert (made.phase, made.progress) == ("running", 0.75)
    assert made.pieces == [{"name": "a", "permille": 1000}, {"name": "b", "permille": 500}]


def test_a_cancelled_run_is_lost_to_its_worker(ask: Ask) -> None:
    made = ask()
    claimed = claims.claim_next(1)
    assert claimed is not None
    simulations.cancel_simulation(actor=ACTOR, simulation_id=made.pk)
    assert not claims.still_mine(claimed, None)
    assert not claims.finish(claimed, {})
    assert not claims.fail(claimed, "too late")
    made.refresh_from_db()
    assert (made.life, made.reason) == (State.CANCELLED, "Cancelled by tester.")
    assert not SimulationResult.objects.exists()


def test_a_waiting_one_can_be_cancelled_and_an_ended_one_cannot(ask: Ask) -> None:
    made = ask()
    simulations.cancel_simulation(actor=ACTOR, simulation_id=made.pk)
    assert claims.claim_next(1) is None
    with pytest.raises(IllegalTransition, match="the simulation is cancelled"):
        simulations.cancel_simulation(actor=ACTOR, simulation_id=made.pk)


def test_what_a_dead_worker_had_begins_again_once(ask: Ask) -> None:
    made = ask()
    for attempt, state in ((1, State.QUEUED), (2, State.FAILED)):
        claimed = claims.claim_next(1)
        assert claimed is not None
        assert claims.recover_lost() == [], "it was heard of just now"
        Simulation.objects.update(seen_at=timezone.now() - claims.SILENT_FOR - timedelta(seconds=1))
        assert [one.pk for one in claims.recover_lost()] == [made.pk]
        assert not claims.finish(claimed, {}), "a worker that comes back has lost it"
        made.refresh_from_db()
        assert (made.life, made.attempts) == (state, attempt)
    assert "died, 2 times" in made.reason


def test_a_worker_that_is_stopped_gives_its_run_back(ask: Ask) -> None:
    made = ask()
    claimed = claims.claim_next(1)
    assert claimed is not None
    assert claims.give_back(claimed)
    assert not claims.give_back(claimed)
    made.refresh_from_db()
    assert (made.life, made.attempts, made.claim) == (State.QUEUED, 0, None)


def test_files_that_nobody_needs_are_cleared(db: None) -> None:
    left_run, left_trace, young = runs_folder() / "gone", traces_folder() / str(uuid4()), traces_folder() / "young"
    left_run.mkdir()
    for path in (left_run / "order.json", left_trace, young):
        path.touch()
    for path in (left_run, left_trace):
        os.utime(path, (0, 0))
    assert keeping.clear_files() == 2
    assert (left_run.exists(), left_trace.exists(), young.exists()) == (False, False, True)
    young.unlink()


def test_the_sweep_rings_for_what_waits(ask: Ask, no_broker: list[tuple[str, tuple[object, ...]]]) -> None:
    tasks.sweep()
    assert no_broker == []
    ask()
    tasks.sweep()
    assert no_broker == [("lab.work", ())]


def test_only_what_has_ended_is_deleted(ask: Ask) -> None:
    made = ask()
    with pytest.raises(Conflict, match="cancel it first"):
        simulations.delete_simulation(actor=ACTOR, simulation_id=made.pk)
    simulations.cancel_simulation(actor=ACTOR, simulation_id=made.pk)
    simulations.delete_simulation(actor=ACTOR, simulation_id=made.pk)
    with pytest.raises(NotFound):
        simulations.delete_simulation(actor=ACTOR, simulation_id=made.pk)


def test_old_ones_are_forgotten(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "KEPT_SIMULATIONS", 1)
    old, waiting, new = ask(), ask(), ask()
    for one in (old, new):
        simulations.cancel_simulation(actor=ACTOR, simulation_id=one.pk)
    assert keeping.forget_old() == 1
    assert set(Simulation.objects.values_list("pk", flat=True)) == {waiting.pk, new.pk}


def test_the_order_says_what_was_asked(ask: Ask, settings: object, tmp_path: Path) -> None:
    made = ask(rate_scales=[0.5, 2], seed=7, slo_ttft_s=1.5, kv_event_delay_s=0.1, requests_per_s=3.0)
    order = order_of(made, tmp_path / "result.json")
    assert (order.rate_scales, order.seed, order.slo.ttft_s) == ((0.5, 2), 7, 1.5)
    assert order.observation.kv_event_delay_s == 0.1
    assert [policy.scorer for policy in order.policies] == ["multiplicative", "vllm"]
    assert order.trace.requests_per_s == 3.0  # type: ignore[union-attr]


def test_a_result_becomes_a_draft_or_a_policy_of_its_own(ask: Ask) -> None:
    made = ask(policies=["multiplicative:a=2", "vllm"])
    policy, is_new = drafts.draft_policy(actor=ACTOR, simulation_id=made.pk, label="multiplicative:a=2", name="fast")
    assert is_new
    assert policy.live is not None
    assert policy.live.content == {"a": 2.0}
    _, is_new = drafts.draft_policy(actor=ACTOR, simulation_id=made.pk, label="vllm", name="fast")
    assert not is_new
    policy = Policy.objects.select_related("live").get(name="fast")
    assert policy.draft == {"scorer": "vllm"}
    assert policy.live is not None
    assert policy.live.number == 1, "what routes stays as it is"
    with pytest.raises(NotFound, match="no policy nobody"):
        drafts.draft_policy(actor=ACTOR, simulation_id=made.pk, label="nobody", name="fast")
