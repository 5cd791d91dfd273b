"""Prometheus series of the control plane: few, bounded, read from rows at the moment of the scrape."""

from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from controlplane.alerts import selectors as alerts
from controlplane.bridge.workers import convergence
from controlplane.fleet.selectors import count_by_state
from controlplane.preloading import selectors as preloading


class FleetCollector(Collector):
    """Instances by state, the newest configuration, and the workers that run it."""

    def collect(self) -> Iterator[Metric]:
        """Read the present values."""
        instances = GaugeMetricFamily("pointsman_instances", "Instances by state.", labels=["state"])
        for state, count in count_by_state().items():
            instances.add_metric([state.value], count)
        yield instances
        flow = convergence()
        yield GaugeMetricFamily("pointsman_config_revision", "Newest configuration revision.", value=flow.revision)
        yield GaugeMetricFamily(
            "pointsman_web_hears_all",
            "1 while this web process hears what all others hear; 0 while Redis does not answer it.",
            value=int(flow.whole),
        )
        live = [worker for worker in flow.workers if worker.live]
        yield GaugeMetricFamily("pointsman_router_workers", "Router workers heard of lately.", value=len(live))
        behind = sum(worker.config_revision != flow.revision for worker in live)
        yield GaugeMetricFamily(
            "pointsman_router_workers_behind", "Live workers that do not run the newest revision.", value=behind
        )


class AlertsCollector(Collector):
    """Alerts by state, notifications that wait, preloads by state."""

    def collect(self) -> Iterator[Metric]:
        """Read the present values."""
        known = GaugeMetricFamily("pointsman_alerts", "Alerts by state.", labels=["state"])
        for state, count in alerts.count_by_state().items():
            known.add_metric([state.value], count)
        yield known
        yield GaugeMetricFamily(
            "pointsman_notifications_waiting",
            "Notifications that have not been delivered yet.",
            value=alerts.count_waiting(),
        )
        preloads = GaugeMetricFamily("pointsman_preloads", "Preloads of the last day by state.", labels=["state"])
        for life, count in preloading.count_by_state().items():
            preloads.add_metric([life.value], count)
        yield preloads


@cache
def registry() -> CollectorRegistry:
    """Return the registry of this process."""
    found = CollectorRegistry()
    found.register(FleetCollector())
    found.register(AlertsCollector())
    ProcessCollector(registry=found)
    PlatformCollector(registry=found)
    return found
