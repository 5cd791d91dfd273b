"""An alert as the pages show it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from controlplane.alerts.kind import Kind
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.models import Alert, Silence
from controlplane.alerts.selectors import silenced_by


class AlertRow(NamedTuple):
    """One alert, its kind, and the silence that matches it."""

    alert: Alert
    kind: Kind | None
    silence: Silence | None

    @property
    def title(self) -> str:
        """The short name of the kind."""
        return self.alert.kind if self.kind is None else self.kind.title

    @property
    def shown_state(self) -> str:
        """The state in a word; a silenced alert that fires is "silenced"."""
        return "silenced" if self.silence is not None and self.alert.state == "firing" else str(self.alert.state)

    @property
    def links(self) -> Sequence[tuple[str, str]]:
        """Where to look further: pages about what the alert is about."""
        return list(_links(self.alert.labels, int(self.alert.started_at.timestamp())))

    @property
    def evidence(self) -> Sequence[tuple[str, object]]:
        """The numbers behind it, with readable names."""
        return [(name.replace("_", " "), value) for name, value in self.alert.values.items() if value is not None]


def alert_rows(alerts: Iterable[Alert], silences: Sequence[Silence]) -> Iterator[AlertRow]:
    """Return alerts with what belongs to them."""
    for alert in alerts:
        yield AlertRow(alert, KINDS.get(alert.kind), silenced_by(alert, silences) if alert.is_open else None)


def matcher_lines(alert: Alert) -> str:
    """Return the matchers that match an alert and its likes, one a line."""
    return "\n".join(f'{name}="{value}"' for name, value in [("kind", alert.kind), *sorted(alert.labels.items())])


def _links(labels: dict[str, str], started_s: int) -> Iterator[tuple[str, str]]:
    live, decisions = reverse("dashboards:live"), reverse("dashboards:decisions")
    moment = {"range": "120", "then": str(started_s)}
    if instance := labels.get("instance"):
        yield f"{instance} then and now", f"{live}?{urlencode({'instance': instance} | moment)}"
        yield f"decisions for {instance}", f"{decisions}?{urlencode({'instance': instance})}"
    elif workload := labels.get("workload"):
        yield f"{workload} then and now", f"{live}?{urlencode({'workload': workload} | moment)}"
        yield f"decisions of {workload}", f"{decisions}?{urlencode({'workload': workload})}"
    else:
        yield "the scores then and now", f"{live}?{urlencode(moment)}"
