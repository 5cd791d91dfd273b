"""The Celery application: a filesystem broker in the data directory, or Redis where there is one.

The broker is a doorbell, never the truth: every task is idempotent and re-driven from rows by a scheduled sweep, so a
lost message costs time and nothing else.
"""

import os
from pathlib import Path

from celery import Celery
from django.conf import settings

from controlplane import filesystem_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")


def _make_folders() -> None:
    settings.CELERY_FOLDER.mkdir(parents=True, exist_ok=True)  # beat keeps its schedule there whatever the broker is
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    for name in ("data_folder_in", "data_folder_out", "control_folder", "processed_folder"):
        if name in options:
            Path(str(options[name])).mkdir(parents=True, exist_ok=True)


_make_folders()
filesystem_broker.register()
app = Celery("pointsman")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
