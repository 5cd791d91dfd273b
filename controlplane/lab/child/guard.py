"""What the process may use, and that it ends with its parent."""

import contextlib
import os
import resource
import signal
from threading import Thread

_NICENESS = 10
_STANDARD_INPUT = 0


def guard(memory_bytes: int) -> None:
    """Yield to live traffic, limit memory (for processes started from here too), and end when the parent does."""
    os.nice(_NICENESS)
    with contextlib.suppress(ValueError, OSError):  # not every platform has this limit
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the end of standard input, then end this process and those that it started."""
    while os.read(_STANDARD_INPUT, 1):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
