"""One evaluation: a window is read, every kind looks at it, and what they find is taken in.

Everything that changes is changed in transactions that can be repeated: whoever is killed in the middle leaves either
nothing or everything of a step, and the next evaluation goes on from the rows.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

from django.utils import timezone

from controlplane.alerts.finding import Finding
from controlplane.alerts.kind import Kind, Limits
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.models import KindSettings
from controlplane.alerts.services.announcing import announce_due
from controlplane.alerts.services.raising import expire_acknowledgements, take_in
from controlplane.alerts.services.watching import watch_hotspots
from controlplane.alerts.window import NEWEST_S, REFERENCE_S, FleetFact, Published, SloBurn, Window, newest_end
from controlplane.errors import Invalid
from controlplane.fleet.selectors import living
from controlplane.publication import newest_publication
from controlplane.slos.selectors import attainment_of, slos
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import BUCKET_S, bucket_of_time

logger = logging.getLogger(__name__)


def evaluate_newest() -> None:
    """Evaluate the newest window, unless somebody did; let acknowledgements expire; announce what is due."""
    window = read_window(newest_end(time.time()))
    limits = limits_in_force()
    found = list(findings(window, limits))
    if take_in(end=window.end, findings=found, kinds={name: KINDS[name] for name in limits}) is not None:
        watch_hotspots(end=window.end, findings=found)
    expire_acknowledgements()
    announce_due()


def read_window(end: int) -> Window:
    """Return the window that ends at ``end``, from the rows."""
    published = newest_publication()
    age_s = 0.0 if published is None else (timezone.now() - published.at).total_seconds()
    return Window(
        end=end,
        rollups=rollups.read(end - REFERENCE_S, end - BUCKET_S),
        fleet=[FleetFact(str(row.pk), row.name, row.life, row.state_reason, row.has_metrics) for row in living()],
        published=None if published is None else Published(published.revision, age_s),
        burns=list(_burns()),
    )


def read_present(now_s: float) -> Window:
    """Return what is known at this moment: the newest roll-ups alone, those that were written early included."""
    end = bucket_of_time(now_s) + BUCKET_S
    return Window(end=end, rollups=rollups.read(end - NEWEST_S, end - BUCKET_S))


def limits_in_force() -> Mapping[str, Limits]:
    """Return the limits of every kind that is looked for, by name."""
    changed = {row.kind: row for row in KindSettings.objects.all()}
    in_force: dict[str, Limits] = {}
    for kind in KINDS.values():
        row = changed.get(kind.name)
        if row is None:
            in_force[kind.name] = kind.limits
        elif row.enabled:
            in_force[kind.name] = _limits(kind, row)
    return in_force


def findings(window: Window, limits: Mapping[str, Limits]) -> Iterator[Finding]:
    """Return what every kind finds; one that fails is logged, and the others go on."""
    for name, kind_limits in limits.items():
        try:
            found: Sequence[Finding] = list(KINDS[name].evaluate(window, kind_limits))
        except Exception:
            logger.exception("the evaluator of %s failed on the window that ends at %s", name, window.end)
            continue
        yield from found


def _burns() -> Iterator[SloBurn]:
    wanted = list(slos())
    attained = attainment_of(wanted)
    for slo in wanted:
        windows = attained[slo.pk]
        for target in ("ttft", "tpot"):
            measured = {window.window: getattr(window, target) for window in windows}
            rates = {name: one.burn_rate for name, one in measured.items() if one is not None}
            known = {name: rate for name, rate in rates.items() if rate is not None}
            if known:
                yield SloBurn(slo.workload.name, target, windows[0].requests, known)


def _limits(kind: Kind, row: KindSettings) -> Limits:
    try:
        return kind.limits_with(row.limits)
    except Invalid as error:  # they were right when they were set, under an earlier version
        logger.error("the limits of %s are ignored: %s", kind.name, error)
        return kind.limits
