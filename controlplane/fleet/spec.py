"""What somebody asks for when registering or changing an instance, checked whole."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.errors import Invalid
from controlplane.fleet.address import address_faults, normalized
from controlplane.fleet.engine_facts import MOST_TOKENS
from controlplane.fleet.models import InstanceRole
from router.config import MOST_RANKS, KvEventsConfig, kv_events_faults
from router.core.hardware_profiles import HARDWARE_PROFILES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_MODEL = re.compile(r"\S{1,300}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,3998}[\x21-\x7e])?")
_MAX_LABELS = 64
_MAX_LABEL_LENGTH = 256
_MAX_MODELS = 1_000
LEASE_LIMITS_S = (5, 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSpec:
    """The wanted settings of one instance; None leaves a fact to the probe."""

    name: str
    url: str
    role: InstanceRole = InstanceRole.BOTH
    hardware: str = ""
    models: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    spot: bool = False
    lease_s: int | None = None
    kv_block_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    authorization: str | None = field(default=None, repr=False)
    """What to send the engine as ``Authorization``; None keeps what is there, a blank text takes it away."""
    kv_events: KvEventsConfig | None = None
    """Where it publishes KV events; None has routers ask the engine."""
    data_parallel_ranks: int | None = None
    """Ranks behind its address, each routed to by itself; None has the probe find out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", normalized(self.url))

    def check(self) -> None:
        """Refuse settings that cannot be.

        :raises Invalid: naming every field that is at fault.
        """
        faults: defaultdict[str, list[str]] = defaultdict(list)
        if not _NAME.fullmatch(self.name):
            faults["name"].append("It must be 1 to 100 letters, digits or . _ : - and begin with a letter or digit.")
        faults["url"] += address_faults(self.url)
        if self.hardware and self.hardware not in HARDWARE_PROFILES:
            faults["hardware"].append(f"There is no such profile; there are: {', '.join(sorted(HARDWARE_PROFILES))}.")
        if self.models is not None:
            faults["models"] += _model_faults(self.models)
        faults["labels"] += _label_faults(self.labels)
        if self.lease_s is not None and not LEASE_LIMITS_S[0] <= self.lease_s <= LEASE_LIMITS_S[1]:
            faults["lease_s"].append(f"It must be from {LEASE_LIMITS_S[0]} to {LEASE_LIMITS_S[1]} seconds.")
        if self.authorization and not _HEADER_VALUE.fullmatch(self.authorization):
            faults["authorization"].append("It must be one line of at most 4000 printable ASCII characters.")
        if self.kv_events is not None:
            faults["kv_events"] += [f"The {fault}." for fault in kv_events_faults(self.kv_events)]
        for name in ("kv_block_tokens", "kv_capacity_tokens"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST_TOKENS:
                faults[name].append(f"It must be a whole number from 1 to {MOST_TOKENS}.")
        if self.data_parallel_ranks is not None and not 1 <= self.data_parallel_ranks <= MOST_RANKS:
            faults["data_parallel_ranks"].append(f"It must be from 1 to {MOST_RANKS}.")
        present = {name: texts for name, texts in faults.items() if texts}
        if present:
            raise Invalid(present)


def _model_faults(models: tuple[str, ...]) -> list[str]:
    if len(models) > _MAX_MODELS:
        return [f"There are {len(models)}, but at most {_MAX_MODELS} are possible."]
    return [f"{name!r} is no model name." for name in models if not _MODEL.fullmatch(name)]


def _label_faults(labels: Mapping[str, str]) -> list[str]:
    if len(labels) > _MAX_LABELS:
        return [f"There are {len(labels)}, but at most {_MAX_LABELS} are possible."]
    long = [k for k, v in labels.items() if len(k) > _MAX_LABEL_LENGTH or len(v) > _MAX_LABEL_LENGTH or not k]
    return [f"Label {name[:40]!r} is empty or too long." for name in long]
