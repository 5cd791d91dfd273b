"""Free ports for servers that take several in a row, that another process binds, or that go and come back.

Test processes run side by side, so each claims a block of ports of its own while it lives: none is given a port that
another was given a moment ago and has not bound yet.
"""

import fcntl
import os
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import SystemRandom
from threading import Lock

HOST = "127.0.0.1"
_BELOW_CLIENT_PORTS = range(18_000, 32_000)
"""Where the system gives no client's connection a port of its own accord."""
_BLOCK_PORTS = 250
_DEALING = Lock()


def free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive ports that are free on loopback; threads get ports of their own."""
    with _DEALING:
        return _own_block().deal(count)


class _Block:
    """The ports of this process, dealt in turns, so that one comes again as late as possible."""

    def __init__(self) -> None:
        self._ports = _claim_block()
        self._next = self._ports.start

    def deal(self, count: int) -> int:
        for _ in self._ports:
            if self._next + count > self._ports.stop:
                self._next = self._ports.start
            first = self._next
            taken = [port for port in range(first, first + count) if not _is_free(port)]
            self._next = taken[-1] + 1 if taken else first + count
            if not taken:
                return first
        raise RuntimeError(f"no {count} consecutive free ports in {self._ports}")


@cache
def _own_block() -> _Block:
    return _Block()


def _claim_block() -> range:
    """Lock a file for one of the blocks until this process ends; return its ports."""
    folder = Path(tempfile.gettempdir()) / f"pointsman-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    starts = list(_BELOW_CLIENT_PORTS[::_BLOCK_PORTS])
    for start in SystemRandom().sample(starts, len(starts)):
        lock = os.open(folder / str(start), os.O_CREAT | os.O_RDWR, 0o600)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return range(start, start + _BLOCK_PORTS)
        os.close(lock)
    raise RuntimeError(f"every block of ports is claimed by a test process that runs (see {folder})")


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server((HOST, port)):
        return True
    return False
