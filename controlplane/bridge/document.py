"""The configuration document, built from rows."""

from controlplane.fleet import selectors as fleet
from controlplane.fleet.models import Instance
from controlplane.policies import selectors as policies
from controlplane.policies.content import parse
from router.config import ConfigDocument, InstanceConfig, WorkloadConfig
from router.core.hardware_profiles import HARDWARE_PROFILES
from router.core.policy import Policy

_DEFAULT_KV_BLOCK_TOKENS = 16
"""Of an engine that has not told its block size."""


def build_document(revision: int) -> ConfigDocument:
    """Return the document that the rows stand for; the same rows always give the same one."""
    workloads = sorted(policies.workloads(), key=lambda w: (w.is_default, w.position, w.name))
    return ConfigDocument(
        revision=revision,
        instances=tuple(_instance(row) for row in fleet.living().order_by("name")),
        policies=_policies(),
        workloads=tuple(WorkloadConfig(name=w.name, policy=w.policy.name) for w in workloads),
    )


def _instance(row: Instance) -> InstanceConfig:
    return InstanceConfig(
        id=str(row.pk),
        name=row.name,
        url=row.url,
        epoch=row.epoch,
        state=row.life,
        models=tuple(row.served_models),
        role=row.role,
        hardware=HARDWARE_PROFILES.get(row.hardware),
        kv_block_tokens=row.kv_block_tokens or _DEFAULT_KV_BLOCK_TOKENS,
        kv_capacity_tokens=row.kv_capacity_tokens,
    )


def _policies() -> tuple[Policy, ...]:
    live = ((p.name, p.live) for p in policies.policies().order_by("name"))
    return tuple(parse(r.content, name=name, revision=r.number) for name, r in live if r is not None)
