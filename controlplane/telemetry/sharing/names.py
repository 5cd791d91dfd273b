"""How web processes are told apart."""

import os
import socket
from functools import cache
from uuid import uuid4


@cache
def own_name() -> str:
    """Return the name of this process, for people to read."""
    return f"{socket.gethostname()}:{os.getpid()}"


@cache
def own_identity() -> bytes:
    """Return what tells this process from all others, also from an earlier one of its name."""
    return f"{uuid4().hex} {own_name()}".encode()


def name_of(identity: bytes) -> str:
    """Return the name in an identity."""
    return identity.decode(errors="replace").partition(" ")[2]
