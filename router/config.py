"""The configuration document: what a control plane tells every router worker, immutable and versioned.

A document is parsed and validated whole. An invalid one is refused with every reason that was found; nothing in it is
ever replaced by a default in silence. Workers keep the last good document, also across their own restart.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from math import isfinite

import msgspec

from router.core.errors import InvalidPolicy
from router.core.hardware import HardwareProfile
from router.core.instance import InstanceState
from router.core.policy import Policy
from router.core.preload_budget import PreloadBudget
from router.core.request import DEFAULT_WORKLOAD, PRELOAD_WORKLOAD
from router.core.scorers import check_policy
from router.core.workload_match import WorkloadMatch, match_faults
from router.unreadable import UNREADABLE

SCHEMA = 1
MOST_RANKS = 256
"""Data-parallel ranks of one engine."""
KEY_MARK = "pk_"
"""What every API key for inference begins with."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CLASS_ID = re.compile(r"[0-9a-f]{16}")
_PREFIX_SEED = re.compile(r"[0-9a-f]{32}")
_ZMQ_ENDPOINT = re.compile(r"tcp://(?:[A-Za-z0-9._-]+|\*|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class ConfigError(ValueError):
    """A document that cannot be applied; ``reasons`` lists everything that is wrong with it."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class EventDirection(Enum):
    """Which side binds. A vLLM publisher binds only when its endpoint has a wildcard; otherwise it connects."""

    CONNECT = "connect"
    """The publisher binds; we connect."""
    BIND = "bind"
    """The publisher connects to an address of ours; we bind it."""


class KvEventsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an engine publishes its KV events, for one that does not tell it itself (vLLM before 0.32).

    Endpoints are ZMQ's (``tcp://host:port``), as a worker must use them.
    """

    endpoint: str
    replay: str | None = None
    """Where missed messages can be asked for; None: nowhere, what is missed is lost."""
    topic: str = ""
    """Beginning of the topics to take; empty: all."""
    direction: EventDirection = EventDirection.CONNECT


class InstanceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instance as the control plane wants it to be used.

    ``epoch`` grows whenever the engine behind the name lost its cache or changed its address: state kept for an
    earlier epoch is dropped.
    """

    id: str
    name: str
    url: str
    epoch: int = 1
    state: InstanceState = InstanceState.READY
    models: tuple[str, ...] = ()
    role: str = "both"
    hardware: HardwareProfile | None = None
    kv_block_tokens: int = 16
    kv_capacity_tokens: int | None = None
    spot: bool = False
    """The instance may be preempted at short notice."""
    authorization: str | None = None
    """Secret: what is sent upstream as ``Authorization`` (requests, polls) instead of the client's; None passes that
    on."""
    kv_events: KvEventsConfig | None = None
    """None: the engine is asked where it publishes its KV events. Of a data-parallel engine: where its rank 0 does;
    the ports of the others count up."""
    rank: int | None = None
    """Which data-parallel rank of the engine this is: it is routed to as an instance of its own, at the same address.
    None: the whole engine."""

    @property
    def whole_id(self) -> str:
        """The id of the engine that a rank belongs to (``<id>#<rank>``); its own otherwise."""
        return self.id if self.rank is None else self.id.rpartition("#")[0]


class WorkloadConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named kind of traffic and the policy that routes it."""

    name: str
    policy: str
    match: WorkloadMatch = WorkloadMatch()
    """Rules are tried in the order of the document; the default workload is what none of them matches."""
    concurrent: int | None = None
    """Most requests of the workload that a worker serves at one time; the rest wait in its queue. Unset: no limit."""
    shadow_policy: str | None = None
    """A policy that decides every request of the workload as well, without being obeyed."""


class ModelTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that stands behind an alias, with its share (> 0, relative to the others)."""

    model: str
    weight: float = 1.0


class ModelAlias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name that clients may use for one model, or for several in shares."""

    name: str
    targets: tuple[ModelTarget, ...]


class TenantConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who uses inference, and how much of it; None is unlimited."""

    name: str
    tokens_per_minute: int | None = None
    requests_per_minute: int | None = None
    concurrent: int | None = None
    keep_prefixes: bool = True
    """Whether the beginnings of its prompts may be kept in memory for preloading."""


class PreloadConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of the texts that are kept for preloading, and who may order it."""

    key_digest: str
    """SHA-256, in hex, of the key that the control plane shows."""
    max_classes: int = PreloadBudget().most_prefixes
    max_bytes: int = 262_144
    """Of the text of one class."""


class KeyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An API key for inference: ``digest`` is the SHA-256 of the whole key, in hex."""

    id: str
    digest: str
    tenant: str
    expires_unix_s: float | None = None


class AdmissionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a worker lets requests wait instead of placing them, and for how long."""

    instance_requests: int | None = None
    """Requests (BS) at which an instance is full; while all are, requests wait. Unset: instances are never full."""
    queue_requests: int = 1000
    """Most requests that wait in a worker; more are refused."""
    queue_wait_s: float = 30.0
    """Longest wait, in seconds; then a request is refused."""
    batch_window_ms: float = 0.0
    """Requests that arrive within this time (0 to 10 ms) are decided jointly; 0 decides each at once."""


class ConfigDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a worker needs to route; ``revision`` only ever grows."""

    schema: int = SCHEMA
    revision: int
    instances: tuple[InstanceConfig, ...] = ()
    policies: tuple[Policy, ...] = (Policy(),)
    workloads: tuple[WorkloadConfig, ...] = (WorkloadConfig(name=DEFAULT_WORKLOAD, policy="default"),)
    aliases: tuple[ModelAlias, ...] = ()
    admission: AdmissionConfig = AdmissionConfig()
    tenants: tuple[TenantConfig, ...] = ()
    keys: tuple[KeyConfig, ...] = ()
    """Keys that may be used; one that is revoked or expired is not here."""
    require_key: bool = False
    """Whether a request without a key is refused; a text that looks like a key of ours (:data:`KEY_MARK`) and is none
    always is."""
    watched_classes: tuple[str, ...] = ()
    """Ids of prefix classes (16 hex digits) that the control plane has put on watch."""
    preload: PreloadConfig | None = None
    """None: no text of any prompt is kept."""
    prefix_seed: str | None = None
    """Secret of 32 hex digits that all workers hash prompts with, so that a class has one id everywhere; None: each
    worker has a secret of its own."""


def parse_config(data: bytes) -> ConfigDocument:
    """Parse and validate a JSON document.

    :raises ConfigError: naming every fault that was found.
    """
    try:
        document = msgspec.json.decode(data, type=ConfigDocument)
    except UNREADABLE as error:
        raise ConfigError([str(error)]) from error
    reasons = list(_faults(document))
    if reasons:
        raise ConfigError(reasons)
    return document


def dump_config(document: ConfigDocument) -> bytes:
    """Serialise a document; equal documents give equal bytes."""
    return msgspec.json.encode(document, order="deterministic")


def _faults(document: ConfigDocument) -> Iterator[str]:
    if document.schema != SCHEMA:
        yield f"schema {document.schema} is not {SCHEMA}, the one this worker reads"
    yield from _repeated("instance name", (i.name for i in document.instances))
    yield from _repeated("instance id", (i.id for i in document.instances))
    yield from _repeated("policy", (p.name for p in document.policies))
    yield from _repeated("workload", (w.name for w in document.workloads))
    for instance in document.instances:
        yield from _instance_faults(instance)
    for policy in document.policies:
        try:
            check_policy(policy)
        except InvalidPolicy as error:
            yield f"policy {policy.name}: {error}"
    yield from _workload_faults(document)
    yield from _tenant_faults(document)
    yield from _alias_faults(document)
    yield from _admission_faults(document)
    for class_id in document.watched_classes:
        if not _CLASS_ID.fullmatch(class_id):
            yield f"watched class {class_id!r} is not 16 hex digits"
    yield from _preload_faults(document.preload)
    if document.prefix_seed is not None and not _PREFIX_SEED.fullmatch(document.prefix_seed):
        yield "prefix_seed is not 32 hex digits"


def _workload_faults(document: ConfigDocument) -> Iterator[str]:
    policies = {p.name for p in document.policies}
    for workload in document.workloads:
        if workload.policy not in policies:
            yield f"workload {workload.name}: no policy named {workload.policy}"
        if workload.shadow_policy is not None and workload.shadow_policy not in policies:
            yield f"workload {workload.name}: no policy named {workload.shadow_policy}"
        if workload.name == PRELOAD_WORKLOAD:
            yield f"workload {workload.name}: preloads are counted under that name"
        for fault in match_faults(workload.match):
            yield f"workload {workload.name}: match.{fault}"
    if DEFAULT_WORKLOAD not in {w.name for w in document.workloads}:
        yield f"no workload named {DEFAULT_WORKLOAD}"


def admission_faults(rule: AdmissionConfig) -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong with its value)."""
    for name in ("instance_requests", "queue_requests"):
        limit = getattr(rule, name)
        if limit is not None and limit < 1:
            yield name, f"{limit} is below 1"
    if not 0 <= rule.batch_window_ms <= 10:
        yield "batch_window_ms", f"{rule.batch_window_ms} is not within 0 to 10"
    if not (isfinite(rule.queue_wait_s) and rule.queue_wait_s > 0):
        yield "queue_wait_s", f"{rule.queue_wait_s} is not above 0"


def _admission_faults(document: ConfigDocument) -> Iterator[str]:
    for field, fault in admission_faults(document.admission):
        yield f"admission: {field} {fault}"
    for workload in document.workloads:
        if workload.concurrent is not None and workload.concurrent < 1:
            yield f"workload {workload.name}: concurrent {workload.concurrent} is below 1"


def _alias_faults(document: ConfigDocument) -> Iterator[str]:
    yield from _repeated("alias", (a.name for a in document.aliases))
    names = {a.name for a in document.aliases}
    for alias in document.aliases:
        if not alias.name:
            yield "an alias has no name"
        if not alias.targets:
            yield f"alias {alias.name}: no target"
        yield from _repeated(f"alias {alias.name}: target", (t.model for t in alias.targets))
        for target in alias.targets:
            if not (isfinite(target.weight) and target.weight > 0):
                yield f"alias {alias.name}: weight {target.weight} of {target.model} is not above 0"
            if target.model in names:
                yield f"alias {alias.name}: {target.model} is an alias itself"


def _preload_faults(preload: PreloadConfig | None) -> Iterator[str]:
    if preload is None:
        return
    if not _DIGEST.fullmatch(preload.key_digest):
        yield "preload: key_digest is not 64 hex digits"
    for name in ("max_classes", "max_bytes"):
        if getattr(preload, name) < 1:
            yield f"preload: {name} {getattr(preload, name)} is below 1"


def _tenant_faults(document: ConfigDocument) -> Iterator[str]:
    yield from _repeated("tenant", (t.name for t in document.tenants))
    yield from _repeated("key", (k.digest for k in document.keys))
    for tenant in document.tenants:
        for name in ("tokens_per_minute", "requests_per_minute", "concurrent"):
            limit = getattr(tenant, name)
            if limit is not None and limit < 1:
                yield f"tenant {tenant.name}: {name} {limit} is below 1"
    names = {t.name for t in document.tenants}
    for key in document.keys:
        if key.tenant not in names:
            yield f"key {key.id}: no tenant named {key.tenant}"
        if not _DIGEST.fullmatch(key.digest):
            yield f"key {key.id}: the digest is not 64 hex digits"


def _instance_faults(instance: InstanceConfig) -> Iterator[str]:
    if not instance.url.startswith(("http://", "https://")):
        yield f"instance {instance.name}: url {instance.url!r} is neither http:// nor https://"
    if instance.kv_block_tokens < 1:
        yield f"instance {instance.name}: kv_block_tokens {instance.kv_block_tokens} is below 1"
    if instance.kv_capacity_tokens is not None and instance.kv_capacity_tokens < 1:
        yield f"instance {instance.name}: kv_capacity_tokens {instance.kv_capacity_tokens} is below 1"
    if instance.rank is not None and not 0 <= instance.rank < MOST_RANKS:
        yield f"instance {instance.name}: rank {instance.rank} is not within 0 to {MOST_RANKS - 1}"
    if instance.kv_events is not None:
        for fault in kv_events_faults(instance.kv_events):
            yield f"instance {instance.name}: kv_events.{fault}"


def kv_events_faults(events: KvEventsConfig) -> Iterator[str]:
    """Yield what is wrong with where events are said to be published."""
    for name in ("endpoint", "replay"):
        value = getattr(events, name)
        if value is None:
            continue
        match = _ZMQ_ENDPOINT.fullmatch(value)
        if match is None or not 1 <= int(match[1]) <= 65_535:
            yield f"{name} {value!r} is not tcp://host:port"
        elif "*" in value and (name == "replay" or events.direction is EventDirection.CONNECT):
            yield f"{name} {value!r} cannot be connected to"


def _repeated(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{kind} {name!r} stands {count} times"
