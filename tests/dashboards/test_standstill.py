"""Without the task worker nothing is probed, evaluated or simulated: every page says so."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.alerts.evaluating import evaluate_newest
from controlplane.alerts.models import Evaluation
from controlplane.ops.diagnosis import findings
from controlplane.ops.standstill import tasks_stand_still_since
from controlplane.telemetry.hub import Hub

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")
SAID = "Tasks stand still since"
PAGES = ["/", "/decisions/", "/instances/", "/alerts/", "/lab/", "/settings/", "/standstill/"]


def evaluated(at: datetime) -> None:
    Evaluation.objects.create(pk=1, at=at)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_since_when(signed_in: Client, fresh_hub: Hub, path: str) -> None:
    evaluated(datetime.fromisoformat("2026-01-02T03:04:05+00:00"))
    assert f'{SAID} <time datetime="2026-01-02T03:04:05+00:00">' in signed_in.get(path).content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_said_while_they_run(signed_in: Client, fresh_hub: Hub, path: str) -> None:
    assert SAID not in signed_in.get(path).content.decode()
    evaluated(timezone.now() - timedelta(seconds=20))
    assert SAID not in signed_in.get(path).content.decode()


def test_an_evaluation_is_the_pulse_also_where_nothing_is_found() -> None:
    evaluated(timezone.now() - timedelta(hours=1))
    assert tasks_stand_still_since() is not None
    evaluate_newest()
    assert tasks_stand_still_since() is None


def test_the_check_up_tells_it_too() -> None:
    def tasks() -> tuple[bool, str]:
        return next((one.ok, one.text) for one in findings() if one.subject == "tasks")

    assert tasks() == (True, "none has run yet")
    evaluated(timezone.now() - timedelta(hours=1))
    ok, text = tasks()
    assert not ok
    assert "is the Celery worker running?" in text
    evaluate_newest()
    assert tasks() == (True, "run")
