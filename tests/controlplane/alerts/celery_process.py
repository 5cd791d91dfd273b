"""A real Celery worker on the test's database and a broker of its own, that can be killed like any process."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

from django.conf import settings
from django.db import connection

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
_FOLDERS = ("data_folder_in", "data_folder_out", "control_folder", "processed_folder")
_CODE = """
import sys, django
django.setup()
from django.conf import settings
from controlplane.celery import app
name, folder = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = name
options = app.conf.broker_transport_options
for key in options:
    if key.startswith("data_folder"): options[key] = folder + "/messages"
    elif key.endswith("_folder"): options[key] = folder + "/" + key
app.worker_main(["worker", "--pool", "threads", "--concurrency", "2", "--without-gossip", "--without-mingle",
                 "--without-heartbeat", "--loglevel", "INFO"])
"""


def broker_options(folder: Path) -> dict[str, object]:
    """Return the options of a filesystem broker in a folder, which is made."""
    options = dict(settings.CELERY_BROKER_TRANSPORT_OPTIONS)
    for name in _FOLDERS:
        path = folder / ("messages" if name.startswith("data") else name)
        path.mkdir(parents=True, exist_ok=True)
        options[name] = str(path)
    return options


class CeleryProcess:
    """One worker."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(connection.settings_dict["NAME"]), str(folder)],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []

    async def ready(self) -> None:
        """Wait until it takes tasks."""
        await asyncio.wait_for(asyncio.to_thread(self._read_until, " ready."), PATIENCE_S)
        Thread(target=self._read_until, args=("never said",), daemon=True).start()  # so that its pipe never fills

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def stop(self) -> None:
        """End it in any way."""
        if self._process.poll() is None:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read_until(self, text: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if text in line:
                return
        if text == " ready.":
            raise AssertionError("".join(self._lines))
