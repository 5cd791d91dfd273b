"""Are the ports free, and if not, who has them."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from controlplane.ops.supervisor.address import Address

_PROC = Path("/proc")
_LISTENING = "0A"
_HIGHEST = 65_535


def port_fault(address: Address) -> str | None:
    """Return why nothing can listen at an address, in words, or None."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        return f"{address}: the host {address.host} is not known ({error.strerror or error})"
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(where)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return f"port {address.port} on {address.host} is taken by {_holder(address.port)}"
            return f"cannot listen on {address}: {error.strerror or error}"
    return None


def free_run(host: str, first: int, count: int) -> int:
    """Return the first port of ``count`` free ones in a row, from ``first`` on.

    :raises ValueError: when there is no such run.
    """
    start = first
    while start + count - 1 <= _HIGHEST:
        taken = [port for port in range(start, start + count) if port_fault(Address(host, port))]
        if not taken:
            return start
        start = taken[-1] + 1
    raise ValueError(f"there are no {count} free ports in a row from {first} on")


def _holder(port: int) -> str:
    inodes = set(_listening_inodes(port))
    for process in _PROC.glob("[0-9]*") if inodes else ():
        if inodes & set(_socket_inodes(process)):
            return f"process {process.name} ({_command(process)})"
    return "another process"


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        path = _PROC / "net" / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _socket_inodes(process: Path) -> Iterator[str]:
    try:
        for descriptor in (process / "fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                yield target[len("socket:[") : -1]
    except OSError:  # it has ended, or belongs to somebody else
        return


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "it has just ended"
    return " ".join(word.decode(errors="replace") for word in words if word)[:120]
