"""Tasks that are rung for by name."""

import pytest
from celery import current_app

from controlplane.alerts import task_names as alerts
from controlplane.fleet import task_names as fleet
from controlplane.lab import task_names as lab
from controlplane.preloading import task_names as preloading


@pytest.mark.parametrize(
    "name", [alerts.EVALUATE, alerts.LOOK_EARLY, alerts.DELIVER, fleet.PROBE_INSTANCE, lab.WORK, preloading.SEND]
)
def test_every_name_that_is_rung_for_is_a_task(name: str) -> None:
    current_app.loader.import_default_modules()
    assert name in current_app.tasks
