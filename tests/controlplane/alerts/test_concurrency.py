"""Many at once: one open alert a condition, one claim a row, one count a window. Runs on whichever database is set."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest
from django.db import connections

from controlplane.alerts.models import Alert, Channel, Delivery, Suspicion
from controlplane.alerts.services import handling
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.outbox import claim
from controlplane.alerts.services.raising import raise_alert, take_in
from tests.controlplane.alerts.conftest import OLGA, finding
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 6
Result = TypeVar("Result")


def together(action: Callable[[int], Result]) -> list[Result]:
    """Do something in several threads that start at the same moment."""
    barrier = Barrier(AT_ONCE, timeout=PATIENCE_S)

    def one(number: int) -> Result:
        try:
            barrier.wait()
            return action(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def test_one_condition_is_one_open_alert_however_many_raise_it() -> None:
    raised = together(lambda _: raise_alert(finding=finding()).pk)
    assert len(set(raised)) == 1
    assert Alert.objects.get().timeline.count() == 1


def test_different_conditions_do_not_get_in_each_others_way() -> None:
    together(lambda number: raise_alert(finding=finding(f"gpu-{number}")).pk)
    assert Alert.objects.count() == AT_ONCE


def test_a_condition_that_comes_back_is_brought_back_once() -> None:
    alert = raise_alert(finding=finding())
    handling.resolve(actor=OLGA, alert_id=alert.pk)
    together(lambda _: raise_alert(finding=finding()).pk)
    assert Alert.objects.get().recurrences == 1


def test_a_window_is_counted_once() -> None:
    outcomes = together(lambda _: take_in(end=1_800_000_000, findings=[finding()]))
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert Suspicion.objects.get().seen == 1


def test_a_row_is_claimed_once(channel: Callable[..., Channel]) -> None:
    channel()
    for number in range(20):
        raise_alert(finding=finding(f"gpu-{number}"))
    announce_due()
    claimed = Counter(row.pk for rows in together(lambda _: claim(10)) for row in rows)
    assert set(claimed.values()) == {1}
    assert len(claimed) + len(claim(100)) == Delivery.objects.count() == 20


def test_an_alert_is_announced_once(channel: Callable[..., Channel]) -> None:
    channel()
    raise_alert(finding=finding())
    together(lambda _: announce_due())
    assert Delivery.objects.count() == 1


def test_one_person_acknowledges_first(alert: Alert) -> None:
    together(lambda _: handling.acknowledge(actor=OLGA, alert_id=alert.pk))
    assert list(alert.timeline.values_list("what", flat=True)) == ["fired", "acknowledged"]
