"""What the operating system says about this process."""

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATM = Path("/proc/self/statm")
_FDS = Path("/proc/self/fd")
MOST_FILES = 1 << 20
"""More are never asked for."""


def resident_bytes() -> int:
    """Return resident memory in bytes; where the system does not tell the present value, the highest so far."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def allow_open_files() -> None:
    """Let this process open as many files as it may ever: connections are files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has a lower limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_open_files() -> int:
    """Return how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def open_files() -> int:
    """Return the number of open file descriptors; 0 where the system does not tell."""
    return sum(1 for _ in _FDS.iterdir()) if _FDS.exists() else 0
