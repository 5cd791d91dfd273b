"""Where files lie: traces that were taken in, recordings of the router workers, and the folder of a run."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from django.conf import settings


def trace_path(trace_id: UUID) -> Path:
    """Return where a trace file lies."""
    return traces_folder() / str(trace_id)


def traces_folder() -> Path:
    """Return the folder of all trace files."""
    return _folder("lab", "traces")


def runs_folder() -> Path:
    """Return the folder in which runs have their folders."""
    return _folder("lab", "runs")


def recordings_folder() -> Path:
    """Return the folder in which recordings of router workers are looked for."""
    return _folder("recordings")


def last_minutes_folder() -> Path:
    """Return the folder in which router workers keep recording their last minutes; there may be none."""
    return recordings_folder() / "last"


def scratch(prefix: str) -> "TemporaryDirectory[str]":
    """Return a folder that goes away after its use."""
    return TemporaryDirectory(prefix=f"{prefix}-", dir=runs_folder(), ignore_cleanup_errors=True)


def _folder(*names: str) -> Path:
    folder = settings.DATA_DIR.joinpath(*names)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(os.fspath(folder))
