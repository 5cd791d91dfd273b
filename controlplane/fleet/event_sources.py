"""Where an instance publishes its KV events, as people said: between the row and the configuration document."""

import msgspec

from controlplane.fleet.models import Instance
from router.config import KvEventsConfig


def kv_events_of(instance: Instance) -> KvEventsConfig | None:
    """Return what was said; None has routers ask the engine."""
    return None if instance.kv_events is None else msgspec.convert(instance.kv_events, KvEventsConfig)
