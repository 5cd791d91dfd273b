"""An instance as the audit log keeps it: what people set and what the life-cycle made of it."""

from typing import Any

from controlplane.fleet.models import Instance


def describe(instance: Instance) -> dict[str, Any]:
    """Return plain JSON."""
    return {
        "name": instance.name,
        "url": instance.url,
        "role": instance.role,
        "hardware": instance.hardware,
        "models": list(instance.served_models),
        "models_source": instance.models_source,
        "labels": dict(instance.labels),
        "spot": instance.spot,
        "lease_s": instance.lease_s,
        "kv_block_tokens": instance.kv_block_tokens,
        "kv_capacity_tokens": instance.kv_capacity_tokens,
        "kv_events": instance.kv_events,
        "data_parallel_ranks": instance.data_parallel_ranks,
        "has_authorization": instance.authorization is not None,
        "state": str(instance.state),
        "state_reason": instance.state_reason,
        "epoch": instance.epoch,
    }
