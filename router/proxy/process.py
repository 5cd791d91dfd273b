"""What the operating system says about this process."""

import resource
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
_FDS = Path("/proc/self/fd")


def resident_bytes() -> int:
    """Return resident memory in bytes; where the system does not tell the present value, the highest so far."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def open_files() -> int:
    """Return the number of open file descriptors; 0 where the system does not tell."""
    return sum(1 for _ in _FDS.iterdir()) if _FDS.exists() else 0
