"""Free ports for servers that take several in a row, or that another process binds."""

import socket
from contextlib import suppress
from random import SystemRandom

HOST = "127.0.0.1"
_BELOW_CLIENT_PORTS = range(18_000, 32_000)
"""Where the system gives no client's connection a port of its own accord."""


def free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive ports that are free on loopback."""
    for _ in range(200):
        first = SystemRandom().randrange(_BELOW_CLIENT_PORTS.start, _BELOW_CLIENT_PORTS.stop - count)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"no {count} consecutive free ports")


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server((HOST, port)):
        return True
    return False
