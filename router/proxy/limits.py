"""Every limit of the data plane, in one value: sizes in bytes, times in seconds."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and time limits; every wait has one.

    The idle limit towards engines stays below vLLM's own (5 s), so that a pooled connection is rarely found closed.
    """

    max_head_bytes: int = 32 * 1024
    max_body_bytes: int = 64 * 1024 * 1024
    max_buffered_bytes: int = 1024 * 1024 * 1024
    """Request heads and bodies held at one time, over all connections."""
    max_pipelined_bytes: int = 64 * 1024
    write_buffer_bytes: int = 256 * 1024
    """Answer bytes waiting for a slow client before its engine is no longer read."""
    max_idle_upstream: int = 256
    """Idle connections kept per instance."""
    client_head_s: float = 10.0
    client_body_s: float = 120.0
    client_idle_s: float = 75.0
    client_write_stall_s: float = 60.0
    client_linger_s: float = 2.0
    upstream_connect_s: float = 2.0
    upstream_idle_s: float = 4.0
    first_byte_s: float = 600.0
    between_bytes_s: float = 120.0
    drain_s: float = 30.0
    """How long a stopping worker lets answers finish."""
    max_attempts: int = 3
