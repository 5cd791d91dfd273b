"""How one simulated engine behaves."""

import secrets
from dataclasses import dataclass, field

from router.core.hardware import HardwareProfile
from router.engine.errors import ConfigurationError
from router.engine.kv_publisher import EventEndpoints
from router.engine.models import ServedModels


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How one engine behaves. ``speedup`` > 0 divides every duration; a start delay and time limits are in seconds."""

    profile: HardwareProfile
    models: ServedModels
    block_tokens: int = 16
    speedup: float = 1.0
    api_key: str | None = None
    max_queued: int | None = None
    """Requests that may wait before others are refused with 503; None for any number."""
    start_delay_s: float = 0.0
    """How long the engine answers 503 after it began, as one that loads its weights."""
    shutdown_timeout_s: float = 0.0
    """How long running requests may go on after the order to stop; 0 ends them with the reason ``abort``."""
    keep_alive_s: float | None = None
    """Seconds without a chunk after which a stream gets a comment; None for never."""
    ranks: int = 1
    """Data-parallel ranks, each with a cache of its own."""
    events: EventEndpoints | None = None
    hash_seed: int = field(default_factory=lambda: secrets.randbits(64))

    def __post_init__(self) -> None:
        if not self.speedup > 0:
            raise ConfigurationError(f"the speed-up must be above 0, not {self.speedup}")
        if self.ranks < 1:
            raise ConfigurationError(f"an engine has at least one rank, not {self.ranks}")
        if self.models.max_model_len > self.profile.kv_capacity_tokens:
            raise ConfigurationError(
                f"a context of {self.models.max_model_len} tokens does not fit into "
                f"{self.profile.kv_capacity_tokens} tokens of KV cache"
            )
