"""Become another program that dies with its supervisor: ``python launch.py SUPERVISOR_PID PROGRAM ARGUMENT...``.

Runs as a plain script in the child, before its program takes over. On Linux the kernel then kills the child when the
supervisor ends in any way, also by SIGKILL; elsewhere only an orderly end stops it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _die_with(supervisor: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot tie this process to its supervisor: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != supervisor:  # it died before the line above
        sys.exit("the supervisor is gone")


if __name__ == "__main__":
    _die_with(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  (no shell is wanted)
