"""The last minute of everything: traffic of the fleet, of each instance and of each workload."""

from collections.abc import Container, Iterable, Mapping

from controlplane.telemetry.merged_instance import MergedInstance
from controlplane.telemetry.request_rate import RequestRate
from controlplane.telemetry.traffic import WINDOW_S, Traffic, TrafficWindow, of_instance, of_workload
from router.snapshot import Snapshot

COURSE_STEP_S = 3
"""How far apart the points of an instance's course are: as near as a small line can show."""


class LoadWindow:
    """BS of each instance, sampled once a second for a minute; only while the instance takes requests."""

    def __init__(self) -> None:
        self._seconds: dict[int, dict[str, int]] = {}

    def sample(self, second: int, instances: Iterable[MergedInstance]) -> None:
        """Keep the present BS as that of ``second``; the last sample of a second stands."""
        self._seconds[second] = {i.id: i.bs for i in instances if i.takes_requests}
        for old in [s for s in self._seconds if s <= second - WINDOW_S]:
            del self._seconds[old]

    def max_over_mean(self, ids: Container[str] | None = None) -> float | None:
        """Return the largest mean BS over the mean of all; None without load.

        :param ids: the instances to compare; None: all.
        """
        sums: dict[str, list[int]] = {}
        for bs_by_id in self._seconds.values():
            for identity, bs in bs_by_id.items():
                if ids is None or identity in ids:
                    sums.setdefault(identity, []).append(bs)
        return _max_over_mean([sum(values) / len(values) for values in sums.values()])

    def max_over_mean_at(self, second: int, ids: Container[str] | None = None) -> float | None:
        """Return the same for one second alone."""
        loads = self._seconds.get(second, {}).items()
        return _max_over_mean([bs for identity, bs in loads if ids is None or identity in ids])

    def course(self, identity: str, second: int) -> tuple[int | None, ...]:
        """Return the BS of an instance every ``COURSE_STEP_S`` of the minute before ``second``; None where unknown."""
        steps = range(second - WINDOW_S + COURSE_STEP_S, second, COURSE_STEP_S)
        return tuple(self._seconds.get(at, {}).get(identity) for at in steps)


class InstanceWindow:
    """The last minute of an instance."""

    def __init__(self) -> None:
        self.traffic = TrafficWindow()
        self.rate = RequestRate()


class WorkloadWindow:
    """The last minute of a workload, and the policies that it was routed by, and shadowed by, last."""

    def __init__(self) -> None:
        self.policy = ""
        self.shadow_policy: str | None = None
        self.traffic = TrafficWindow()
        self.rate = RequestRate()


class Minute:
    """Windows that all end with the same second."""

    def __init__(self) -> None:
        self.fleet = TrafficWindow()
        self.load = LoadWindow()
        self.rate = RequestRate()
        self._instances: dict[str, InstanceWindow] = {}
        self._workloads: dict[str, WorkloadWindow] = {}
        self._began_s: float | None = None

    def add(self, snapshot: Snapshot, at_s: float) -> None:
        """Count a snapshot that arrived at ``at_s``."""
        if self._began_s is None:
            self._began_s = at_s - snapshot.interval_s
        second = int(at_s)
        for instance in snapshot.instances:
            traffic = of_instance(instance)
            self.fleet.add(second, traffic)
            known = self._instances.setdefault(instance.id, InstanceWindow())
            known.traffic.add(second, traffic)
            known.rate.add(at_s, snapshot.interval_s, instance.requests)
        for workload in snapshot.workloads:
            window = self._workloads.setdefault(workload.name, WorkloadWindow())
            window.policy, window.shadow_policy = workload.policy, workload.shadow_policy
            window.traffic.add(second, of_workload(workload))
            window.rate.add(at_s, snapshot.interval_s, workload.requests)
        self.rate.add(at_s, snapshot.interval_s, sum(instance.requests for instance in snapshot.instances))

    def advance(self, now_s: float) -> None:
        """Let go of what is older than a minute, and of instances and workloads that nobody names any more."""
        second = int(now_s)
        self.fleet.advance(second)
        for window in self._instances.values():
            window.traffic.advance(second)
        for workload in self._workloads.values():
            workload.traffic.advance(second)
        self._instances = {name: w for name, w in self._instances.items() if not w.traffic.is_empty}
        self._workloads = {name: w for name, w in self._workloads.items() if not w.traffic.is_empty}

    def of_instance(self, identity: str) -> Traffic:
        """Return the last minute of one instance."""
        window = self._instances.get(identity)
        return Traffic() if window is None else window.traffic.total

    def instance_window(self, identity: str) -> InstanceWindow | None:
        """Return the window of one instance; None where it had no traffic."""
        return self._instances.get(identity)

    def workload_window(self, name: str) -> WorkloadWindow:
        """Return the window of one workload; an empty one where it had no traffic."""
        return self._workloads.get(name) or WorkloadWindow()

    def of_workloads(self) -> Mapping[str, WorkloadWindow]:
        """Return the last minute of each workload that had any, by name."""
        return dict(sorted(self._workloads.items()))

    def covered_s(self, now_s: float) -> float:
        """Return how much of the last minute was observed, in seconds (1 at least)."""
        if self._began_s is None:
            return 1.0
        return min(float(WINDOW_S), max(1.0, now_s - self._began_s))


def _max_over_mean(values: list[float] | list[int]) -> float | None:
    total = sum(values)
    return round(max(values) * len(values) / total, 3) if total else None
