"""What the worker counts: fresh counts on the hot path, rolled into totals (scrapes) and undelivered (snapshots).

:meth:`Stats.roll` moves the fresh ones on, :meth:`Stats.take` hands the undelivered ones out, and
:meth:`Stats.give_back` returns them when a delivery failed.
"""

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from router.core.histogram import Counts
from router.snapshot import ChosenPoint

MOST_CHOSEN = 128
NO_INSTANCE = ""
"""Key of what was counted for no instance: requests refused before one was chosen."""


_OF_INSTANCE = (
    "errors",
    "failures",
    "p_token",
    "predicted_hit_tokens",
    "prompt_tokens",
    "reported_hit_tokens",
    "reported_prompt_tokens",
    "requests",
    "score",
    "tpot_us",
    "tpot_us_sum",
    "ttft_us",
    "ttft_us_sum",
)


class InstanceCounts:
    """Counts of one instance. Durations in whole microseconds."""

    __slots__ = _OF_INSTANCE

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.prompt_tokens = 0
        self.predicted_hit_tokens = 0
        self.reported_hit_tokens = 0
        self.reported_prompt_tokens = 0
        self.p_token: Counts = {}
        self.score: Counts = {}
        self.ttft_us: Counts = {}
        self.ttft_us_sum = 0
        self.tpot_us: Counts = {}
        self.tpot_us_sum = 0
        self.failures: dict[str, int] = {}
        """Failed attempts by kind."""

    def add(self, other: "InstanceCounts") -> None:
        """Add the counts of another."""
        _add(self, other, _OF_INSTANCE)


_OF_WORKLOAD = (
    "above_cap",
    "e2e_us",
    "e2e_us_sum",
    "errors",
    "outcomes",
    "output_tokens",
    "predicted_hit_tokens",
    "prompt_tokens",
    "refused",
    "reported_hit_tokens",
    "reported_prompt_tokens",
    "requests",
    "score",
    "shadow_decisions",
    "shadow_differs",
    "shadow_hit_tokens",
    "shadow_live_hit_tokens",
    "shadow_live_product",
    "shadow_moves",
    "shadow_product",
    "shadow_prompt_tokens",
    "tpot_us",
    "tpot_us_sum",
    "ttft_us",
    "ttft_us_sum",
)


class WorkloadCounts:
    """Counts of one workload. Durations in whole microseconds."""

    __slots__ = _OF_WORKLOAD

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.shadow_decisions = 0
        self.shadow_differs = 0
        """Shadow decisions that chose another instance."""
        self.shadow_moves: dict[tuple[str, str], int] = {}
        """Of these, how many went from one instance to another, where both chose one."""
        self.shadow_prompt_tokens = 0
        """Of shadow decisions in which both chose an instance, as are the four below."""
        self.shadow_live_hit_tokens = 0
        """Expected hits at the instances that were chosen."""
        self.shadow_hit_tokens = 0
        """Expected hits at the instances that the shadow chose."""
        self.shadow_live_product = 0
        """P-token x BS of the instances that were chosen, added up."""
        self.shadow_product = 0
        """P-token x BS of the instances that the shadow chose, added up."""
        self.above_cap = 0
        """Requests for which every instance was above the policy's P-token cap."""
        self.prompt_tokens = 0
        self.output_tokens = 0
        self.predicted_hit_tokens = 0
        self.reported_hit_tokens = 0
        self.reported_prompt_tokens = 0
        self.score: Counts = {}
        self.ttft_us: Counts = {}
        self.ttft_us_sum = 0
        self.tpot_us: Counts = {}
        self.tpot_us_sum = 0
        self.e2e_us: Counts = {}
        self.e2e_us_sum = 0
        self.outcomes: dict[str, int] = {}
        """Ended requests by outcome."""
        self.refused: dict[str, int] = {}
        """Requests refused at the door, by reason."""

    def add(self, other: "WorkloadCounts") -> None:
        """Add the counts of another."""
        _add(self, other, _OF_WORKLOAD)


_OF_TENANT = ("output_tokens", "prompt_tokens", "refused", "requests")


class TenantCounts:
    """What one tenant used of one workload."""

    __slots__ = _OF_TENANT

    def __init__(self) -> None:
        self.requests = 0
        self.refused = 0
        self.prompt_tokens = 0
        self.output_tokens = 0

    def add(self, other: "TenantCounts") -> None:
        """Add the counts of another."""
        _add(self, other, _OF_TENANT)


class Tally:
    """The counts of one stretch of time."""

    __slots__ = ("chosen", "instances", "retries", "tenants", "workloads")

    def __init__(self) -> None:
        self.instances: dict[str, InstanceCounts] = {}
        self.workloads: dict[str, WorkloadCounts] = {}
        self.tenants: dict[tuple[str, str], TenantCounts] = {}
        """By tenant and workload."""
        self.chosen: deque[ChosenPoint] = deque(maxlen=MOST_CHOSEN)
        self.retries = 0

    def instance(self, instance_id: str) -> InstanceCounts:
        """Return the counts of an instance."""
        counts = self.instances.get(instance_id)
        if counts is None:
            counts = self.instances[instance_id] = InstanceCounts()
        return counts

    def workload(self, name: str) -> WorkloadCounts:
        """Return the counts of a workload."""
        counts = self.workloads.get(name)
        if counts is None:
            counts = self.workloads[name] = WorkloadCounts()
        return counts

    def tenant(self, name: str, workload: str) -> TenantCounts:
        """Return the counts of a tenant in a workload."""
        counts = self.tenants.get((name, workload))
        if counts is None:
            counts = self.tenants[(name, workload)] = TenantCounts()
        return counts

    def add(self, later: "Tally") -> None:
        """Add what was counted later."""
        for instance_id, instance in later.instances.items():
            self.instance(instance_id).add(instance)
        for name, workload in later.workloads.items():
            self.workload(name).add(workload)
        for (name, workload_name), tenant in later.tenants.items():
            self.tenant(name, workload_name).add(tenant)
        self.chosen.extend(later.chosen)
        self.retries += later.retries

    def keep_only(self, instance_ids: set[str], workloads: set[str], tenants: set[str]) -> None:
        """Drop what belongs to instances, workloads and tenants that are gone."""
        self.tenants = {key: c for key, c in self.tenants.items() if key[0] in tenants and key[1] in workloads}
        self.instances = {i: counts for i, counts in self.instances.items() if i in instance_ids}
        self.workloads = {name: counts for name, counts in self.workloads.items() if name in workloads}


class Stats:
    """All counts of a worker; ``fresh`` is the only part that the hot path touches."""

    def __init__(self) -> None:
        self.fresh = Tally()
        self.totals = Tally()
        self._undelivered = Tally()

    def roll(self) -> None:
        """Move the fresh counts on."""
        fresh, self.fresh = self.fresh, Tally()
        self.totals.add(fresh)
        self._undelivered.add(fresh)

    def take(self) -> Tally:
        """Roll, and return everything that was not delivered yet; it is the caller's now."""
        self.roll()
        taken, self._undelivered = self._undelivered, Tally()
        return taken

    def give_back(self, taken: Tally) -> None:
        """A delivery failed: keep its counts for the next."""
        later, self._undelivered = self._undelivered, taken
        self._undelivered.add(later)

    def keep_only(self, instance_ids: set[str], workloads: set[str], tenants: set[str]) -> None:
        """Drop the series of what is gone; what tenants used is delivered all the same."""
        self.roll()
        self.totals.keep_only(instance_ids, workloads, tenants)
        used = self._undelivered.tenants
        self._undelivered.keep_only(instance_ids, workloads, tenants)
        self._undelivered.tenants = used


Key = TypeVar("Key", int, str, tuple[str, str])


def count(counts: dict[Key, int], key: Key) -> None:
    """Add one under a key."""
    counts[key] = counts.get(key, 0) + 1


Counted = InstanceCounts | WorkloadCounts | TenantCounts


def _add(into: Counted, other: Counted, members: Sequence[str]) -> None:
    """Add number to number and histogram to histogram, member by member."""
    for name in members:
        value = getattr(other, name)
        if isinstance(value, dict):
            known = getattr(into, name)
            for key, number in value.items():
                known[key] = known.get(key, 0) + number
        else:
            setattr(into, name, getattr(into, name) + value)
