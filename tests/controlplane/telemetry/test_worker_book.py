"""Which snapshots are taken, and what is said of each worker."""

import pytest
from msgspec.structs import replace

from controlplane.telemetry.worker_book import FORGET_AFTER_S, LIVE_FOR_S, NAMESAKE_FOR_S, Heard, WorkerBook
from tests.fakes.snapshots import FakeWorker


def test_what_arrives_out_of_order_is_refused() -> None:
    book, worker = WorkerBook(), FakeWorker()
    first, second = worker.step(), worker.step()
    assert book.accept(Heard(second, 0.0))
    assert not book.accept(Heard(first, 0.1))
    assert not book.accept(Heard(second, 0.2))
    (status,) = book.statuses(1.0)
    assert status.age_s == pytest.approx(1.0)


def test_a_restarted_worker_may_count_from_one_again() -> None:
    book, worker = WorkerBook(), FakeWorker()
    for _ in range(5):
        old = worker.step()
        book.accept(Heard(old, 0.0))
    worker.restart(unix_s=50.0)
    assert book.accept(Heard(worker.step(), 1.0))
    assert not book.accept(Heard(replace(old, seq=99), 2.0)), "the old life has ended"


def test_two_processes_with_one_name_are_told_from_a_restart() -> None:
    book, older, younger = WorkerBook(), FakeWorker(), FakeWorker()
    book.accept(Heard(older.step(), 0.0))
    assert not book.is_namesake(older.step(), 0.1)
    younger.restart(unix_s=50.0)
    book.accept(Heard(younger.step(), 1.0))
    assert [status.has_namesake for status in book.statuses(1.0)] == [False], "a restart"
    assert not book.is_namesake(younger.step(), 1.1)
    assert book.is_namesake(older.step(), 1.2)
    assert [status.has_namesake for status in book.statuses(1.2)] == [True]
    assert [status.has_namesake for status in book.statuses(1.3 + NAMESAKE_FOR_S)] == [False], "it is gone"
    assert not book.is_namesake(older.step(), 1.1 + LIVE_FOR_S), "the younger one has ended"


def test_a_silent_worker_turns_stale_then_is_forgotten() -> None:
    book = WorkerBook()
    book.accept(Heard(FakeWorker().step(), 0.0))
    assert [s.live for s in book.statuses(LIVE_FOR_S)] == [True]
    assert [s.live for s in book.statuses(LIVE_FOR_S + 0.1)] == [False]
    book.forget_silent(FORGET_AFTER_S + 0.1)
    assert book.statuses(FORGET_AFTER_S + 0.1) == ()


def test_status_says_which_revision_runs_and_why_a_newer_does_not() -> None:
    book = WorkerBook()
    book.accept(
        Heard(replace(FakeWorker().step(), config_revision=7, config_error="revision 8: no policy named x"), 0.0)
    )
    (status,) = book.statuses(0.0)
    assert (status.config_revision, status.config_error) == (7, "revision 8: no policy named x")
