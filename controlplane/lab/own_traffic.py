"""The traffic of this installation as a trace: what router workers recorded in their last minutes."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from controlplane.lab.storage import last_minutes_folder
from router.sim.traces.segments import segments

MOST_MINUTES = 60
_CHOICE = re.compile(r"own:(\d{1,4})")


@dataclass(frozen=True, slots=True)
class OwnRecording:
    """What there is of own traffic, over all workers."""

    size_bytes: int
    changed_at: datetime


def own_choice(minutes: int) -> str:
    """Return how the last minutes are named where a trace is chosen."""
    return f"own:{minutes}"


def own_minutes(choice: str) -> int | None:
    """Return how many minutes a choice of a trace stands for; None for any other choice, and for too many."""
    found = _CHOICE.fullmatch(choice)
    return int(found[1]) if found and 1 <= int(found[1]) <= MOST_MINUTES else None


def own_recording() -> OwnRecording | None:
    """Return what is recorded; None where no worker ever did."""
    known = [path.stat() for path in segments(last_minutes_folder()) if path.exists()]
    if not known:
        return None
    newest_s = max(one.st_mtime for one in known)
    return OwnRecording(sum(one.st_size for one in known), datetime.fromtimestamp(newest_s, UTC))
