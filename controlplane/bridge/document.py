"""The configuration document, built from rows."""

from django.conf import settings
from msgspec.structs import replace

from controlplane.accounts import selectors as accounts
from controlplane.accounts.models import InferenceKey, Tenant
from controlplane.admission.selectors import admission
from controlplane.alerts.selectors import watched_classes
from controlplane.aliases.models import ModelAlias
from controlplane.aliases.selectors import aliases
from controlplane.fleet import selectors as fleet
from controlplane.fleet.credentials import authorization_of
from controlplane.fleet.event_sources import kv_events_of
from controlplane.fleet.models import Instance
from controlplane.policies import selectors as policies
from controlplane.policies.match import parse_match
from controlplane.policies.models import Workload
from controlplane.preloading.selectors import opted_out
from controlplane.preloading.sending import order_key_digest
from controlplane.sealing import derived
from controlplane.telemetry.ranks import rank_name
from router.config import (
    MOST_RANKS,
    ConfigDocument,
    InstanceConfig,
    KeyConfig,
    ModelTarget,
    PreloadConfig,
    TenantConfig,
    WorkloadConfig,
)
from router.config import ModelAlias as AliasConfig
from router.core.hardware_profiles import HARDWARE_PROFILES

_PREFIX_SEED_BYTES = 16
_DEFAULT_KV_BLOCK_TOKENS = 16
"""Of an engine that has not told its block size."""


def build_document(revision: int) -> ConfigDocument:
    """Return the document that the rows stand for; the same rows always give the same one."""
    silent = opted_out()
    workloads = sorted(policies.workloads(), key=lambda w: (w.is_default, w.position, w.name))
    return ConfigDocument(
        revision=revision,
        instances=tuple(one for row in fleet.living().order_by("name") for one in _ranks(row)),
        policies=tuple(policies.live_policies()),
        workloads=tuple(_workload(row) for row in workloads),
        aliases=tuple(_alias(row) for row in aliases().order_by("name")),
        admission=admission().rule,
        tenants=tuple(_tenant(row, silent) for row in accounts.tenants().order_by("name")),
        keys=tuple(_key(row) for row in accounts.usable_keys().order_by("pk")),
        require_key=settings.REQUIRE_KEY,
        watched_classes=tuple(watched_classes()),
        preload=_preload() if settings.PRELOAD else None,
        prefix_seed=derived("prefix seed", _PREFIX_SEED_BYTES).hex(),
    )


def _preload() -> PreloadConfig:
    return PreloadConfig(key_digest=order_key_digest(), max_classes=settings.PRELOAD_PREFIXES)


def _ranks(row: Instance) -> list[InstanceConfig]:
    """Return an instance, or each of its data-parallel ranks as one."""
    whole, ranks = _instance(row), min(row.ranks, MOST_RANKS)
    if ranks == 1:
        return [whole]
    return [
        replace(whole, id=rank_name(whole.id, rank), name=rank_name(whole.name, rank), rank=rank)
        for rank in range(ranks)
    ]


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
        spot=row.spot,
        authorization=authorization_of(row),
        kv_events=kv_events_of(row),
    )


def _workload(row: Workload) -> WorkloadConfig:
    return WorkloadConfig(
        name=row.name,
        policy=row.policy.name,
        match=parse_match(row.match),
        shadow_policy=None if row.shadow_policy is None else row.shadow_policy.name,
        concurrent=row.concurrent,
    )


def _alias(row: ModelAlias) -> AliasConfig:
    targets = tuple(ModelTarget(model=target.model, weight=target.weight) for target in row.split)
    return AliasConfig(name=row.name, targets=targets)


def _tenant(row: Tenant, silent: frozenset[str]) -> TenantConfig:
    return TenantConfig(
        name=row.name,
        tokens_per_minute=row.tokens_per_minute,
        requests_per_minute=row.requests_per_minute,
        concurrent=row.concurrent,
        keep_prefixes=row.name not in silent,
    )


def _key(row: InferenceKey) -> KeyConfig:
    expires_unix_s = None if row.expires_at is None else row.expires_at.timestamp()
    return KeyConfig(id=str(row.pk), digest=row.digest, tenant=row.tenant.name, expires_unix_s=expires_unix_s)
