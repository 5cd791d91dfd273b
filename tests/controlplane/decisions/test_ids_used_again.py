"""A client may use a request id again, with any worker: of the decisions about it the newest one is told and kept."""

from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from controlplane.decisions import explaining, questions
from controlplane.decisions.explaining import Finding, at_hand, explain
from controlplane.decisions.keeping import keep, kept
from controlplane.decisions.models import KeptDecision
from controlplane.errors import Conflict
from controlplane.telemetry.hub import Hub
from router.snapshot import DecisionSample
from tests.fakes.answering_workers import have_answers
from tests.fakes.snapshots import FakeWorker

pytestmark = pytest.mark.django_db(databases="__all__")
WORKERS = ("router-0", "router-1")


@pytest.fixture
def first(fresh_hub: Hub) -> DecisionSample:
    """A decision about ``again``, in a fleet with two workers."""
    for name in WORKERS:
        fresh_hub.accept(FakeWorker(2, 100.0, name=name).step())
    sample = fresh_hub.decisions.newest()
    assert sample is not None
    return replace(sample, request_id="again", time_unix_s=1_000.0, chosen="gpu-00")


def later(sample: DecisionSample, by_s: float, chosen: str) -> DecisionSample:
    return replace(sample, time_unix_s=sample.time_unix_s + by_s, chosen=chosen)


def test_the_newest_replaces_the_one_that_was_kept(first: DecisionSample, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(first)
    newest = later(first, 60.0, "gpu-01")
    have_answers(monkeypatch, {"router-0": None, "router-1": newest})
    assert explain("again").decision == newest
    assert kept("again") == newest


@pytest.mark.parametrize("newer_of", WORKERS)
def test_where_both_workers_have_one_the_later_counts_whoever_answers_first(
    first: DecisionSample, monkeypatch: pytest.MonkeyPatch, newer_of: str
) -> None:
    newest = later(first, 0.5, "gpu-01")
    have_answers(monkeypatch, {name: newest if name == newer_of else first for name in WORKERS})
    assert explain("again").decision == newest


def test_one_answer_does_not_end_the_search(first: DecisionSample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "LIMIT_S", 0.0)
    have_answers(monkeypatch, {"router-0": first})
    found = explain("again")
    assert (found.finding, found.decision, found.silent) == (Finding.FOUND, first, ("router-1",))


def test_who_answered_just_now_is_asked_again(first: DecisionSample, monkeypatch: pytest.MonkeyPatch) -> None:
    have_answers(monkeypatch, {"router-0": first, "router-1": None})
    assert explain("again").decision == first
    newest = later(first, 2.0, "gpu-01")
    have_answers(monkeypatch, {"router-0": first, "router-1": newest})
    assert explain("again").decision == newest


def test_what_is_told_again_takes_nothing_from_a_newer_one(first: DecisionSample, fresh_hub: Hub) -> None:
    newest = later(first, 60.0, "gpu-01")
    keep(newest)
    fresh_hub.decisions.add(first)
    assert at_hand("again") == newest
    assert keep(replace(newest, time_unix_s=newest.time_unix_s + 1e-5)) == newest


def test_a_newer_one_is_kept_as_long_as_any_other(first: DecisionSample) -> None:
    keep(first)
    KeptDecision.objects.update(kept_at=timezone.now() - timedelta(days=20))
    keep(later(first, 60.0, "gpu-01"))
    assert KeptDecision.objects.get().kept_at > timezone.now() - timedelta(days=1)


def test_what_is_at_hand_does_where_nobody_can_be_asked(first: DecisionSample, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(first)
    monkeypatch.setattr(questions, "MOST_OPEN", 0)
    assert explain("again").decision == first
    with pytest.raises(Conflict):
        explain("unknown")
