"""Forgetting what is old: results are large, and a simulation can be run again. Clearing files that nobody needs."""

import shutil
import time
from pathlib import Path

from controlplane.lab.lifecycle import ENDED
from controlplane.lab.limits import INSPECTION_LIMIT_S, KEPT_SIMULATIONS, limits
from controlplane.lab.models import Simulation, Trace
from controlplane.lab.storage import runs_folder, traces_folder

_AT_ONCE = 100
_MARGIN_S = 3600.0
"""A file that is older than anybody could still be using it, and then by so much, belongs to nobody."""


def forget_old() -> int:
    """Delete the oldest ended simulations beyond those that are kept; return how many."""
    ended = Simulation.objects.filter(state__in=ENDED).order_by("-created_at", "pk")
    doomed = list(ended.values_list("pk", flat=True)[KEPT_SIMULATIONS : KEPT_SIMULATIONS + _AT_ONCE])
    if doomed:
        Simulation.objects.filter(pk__in=doomed).delete()
    return len(doomed)


def clear_files() -> int:
    """Remove what processes that were killed have left: folders of runs, traces without a row; return how many."""
    folders = _older_than(runs_folder(), limits().time_s + _MARGIN_S)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    files = _older_than(traces_folder(), INSPECTION_LIMIT_S + _MARGIN_S)
    known = {str(pk) for pk in Trace.objects.values_list("pk", flat=True)} if files else set()
    orphans = [file for file in files if file.name not in known]
    for orphan in orphans:
        orphan.unlink(missing_ok=True)
    return len(folders) + len(orphans)


def _older_than(folder: Path, age_s: float) -> list[Path]:
    before_s = time.time() - age_s
    return [path for path in folder.iterdir() if path.stat().st_mtime < before_s]
