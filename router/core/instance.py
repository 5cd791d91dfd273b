"""What a decision may know about an instance: an immutable view, replaced whole whenever a counter moves."""

from enum import StrEnum

import msgspec

from router.core.hardware import HardwareProfile


class InstanceState(StrEnum):
    """Where an instance is in its life. Only READY and WARMING take new requests."""

    REGISTERED = "registered"
    PROBING = "probing"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    DRAINED = "drained"
    MAINTENANCE = "maintenance"
    UNREACHABLE = "unreachable"
    REMOVED = "removed"


ROUTABLE_STATES = frozenset({InstanceState.READY, InstanceState.WARMING})


class InstanceView(msgspec.Struct, frozen=True, gc=False):
    """One instance as the router sees it at one moment.

    Counters are whole and never negative: requests for ``bs``, ``running``, ``waiting`` and ``own_requests``, tokens
    for ``queued_prefill_tokens`` and ``active_kv_tokens``. ``kv_use`` is a share 0..1, or None when the engine did not
    say. ``bs`` does not yet contain the request that is being decided.
    """

    slot: int
    name: str
    state: InstanceState = InstanceState.READY
    models: frozenset[str] = frozenset()
    """Names this instance answers to; empty means any."""
    bs: int = 0
    """Requests at the instance, waiting and running: the larger of own bookings and the engine's report."""
    running: int = 0
    waiting: int = 0
    own_requests: int = 0
    """Requests this router has booked here and not yet released."""
    queued_prefill_tokens: int = 0
    active_kv_tokens: int = 0
    """KV tokens that requests in flight are expected to hold (prompt, plus output where known)."""
    kv_use: float | None = None
    kv_block_tokens: int = 16
    kv_capacity_tokens: int | None = None
    hardware: HardwareProfile | None = None
    observed: HardwareProfile | None = None
    """What its steps cost by the requests that it served; None until enough was seen."""
    last_chosen: int = 0
    """Value of the fleet's decision counter when this instance was last chosen; 0 = never."""
    windowed_prefill_tokens: int = 0
    """New tokens booked here in the last three minutes (for cost-window baselines)."""
    ejected: bool = False
    """Out of rotation for a while after failures seen by this router."""
    spot: bool = False
    """May be preempted at short notice."""
    cold_since_s: float | None = None
    """When it joined or lost its cache, in seconds of the fleet's clock; None when it is warm."""
    warmth: float = 0.0
    """While it is cold: prefix blocks there, as a share of the mean of the warm instances."""
