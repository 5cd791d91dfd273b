"""Small programs for the supervisor to look after."""

import sys
from collections.abc import Callable
from textwrap import dedent

from controlplane.ops.supervisor.child import ChildSpec
from controlplane.ops.supervisor.readiness import AtOnce, LineSeen, Readiness

READY = "I am ready"


def program(name: str, source: str, readiness: Callable[[], Readiness] | None = None, **limits: float) -> ChildSpec:
    """Return a child that runs some Python and is ready when it prints ``READY``."""
    waits = readiness or (lambda: LineSeen(READY))
    return ChildSpec(name, (sys.executable, "-S", "-c", dedent(source)), waits, **limits)


def sleeper(name: str = "sleeper") -> ChildSpec:
    """Return a child that is ready and then does nothing."""
    return program(name, f"import time; print({READY!r}, flush=True); time.sleep(600)")


def dying(name: str = "dying") -> ChildSpec:
    """Return a child that ends at once, with last words."""
    return program(name, "print('out of luck'); raise SystemExit(3)", AtOnce)


def deaf(name: str = "deaf") -> ChildSpec:
    """Return a child that does not listen to SIGTERM and has a child of its own."""
    source = f"""
    import signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inner = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    print("inner", inner.pid, flush=True)
    print({READY!r}, flush=True)
    time.sleep(600)
    """
    return program(name, source, stop_within_s=0.2)
