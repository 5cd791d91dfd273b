"""The table: each page, its numbers by selector, and the one source that each group of them comes from.

A number that no selector covers must be part of a literal text that is listed here with the page, or the walk fails: a
new number needs a line in this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import AuditEntry, InferenceKey, Tenant
from controlplane.accounts.services import tenants
from controlplane.admission.models import AdmissionSettings
from controlplane.alerts.models import Alert, Silence
from controlplane.alerts.models.timeline_entry import TimelineEntry
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.aliases.models import ModelAlias
from controlplane.env import Reading
from controlplane.fleet.models import Instance
from controlplane.lab.models import Simulation, Trace
from controlplane.policies.models import Policy, PolicyRevision, ShadowHour, ShadowMoveHour, Workload
from controlplane.policies.services import revisions
from controlplane.preloading.models import Preload
from controlplane.slos.models import Slo, SloMinute
from tests.dashboards.walk.world import HISTOGRAM, REQUEST_ID, World

Change = Callable[[World], object]
Numbers = Mapping[Change, tuple[str, ...]]


@dataclass(frozen=True)
class Walked:
    """One page. ``numbers`` maps what is changed to the selectors of what must change with it."""

    path: str
    numbers: tuple[tuple[str, Change, tuple[str, ...]], ...]
    literal: tuple[str, ...] = ()
    """Patterns of whole texts that hold numerals which nothing feeds: words, not figures."""
    settled: str = "main"
    """What is there once the page is whole."""
    opened: tuple[str, ...] = field(default=())
    """Things to click on first, so that what they hold is seen."""


def cells(table: str, *columns: int) -> tuple[str, ...]:
    """Return the selectors of columns of a table (from 1)."""
    return tuple(f"{table} tbody td:nth-child({column})" for column in columns)


def instances(**added: object) -> Change:
    return lambda world: world.change_instances(**added)


def change_first(**added: object) -> Change:
    """Change one instance alone."""
    return lambda world: world.change_instances(first_only=True, **added)


def workload(**added: object) -> Change:
    return lambda world: world.change_workload(**added)


def worker(**added: object) -> Change:
    return lambda world: world.change_worker(**added)


def rows(model: type, **values: object) -> Change:
    return lambda world: world.change_row(model, **values)


def ago(**span: float) -> object:
    return timezone.now() - timedelta(**span)


def decision(world: World) -> None:
    world.change_decision()


def publish_policy(world: World) -> None:
    """Publish a revision, which is also a new configuration."""
    number = PolicyRevision.objects.filter(policy__name="default").count()
    revisions.publish(
        actor=SYSTEM, name="default", message=f"Number {number}", expected=number, content={"b": float(number + 1)}
    )


def another_policy(world: World) -> None:
    """Have one more policy to ask."""
    revisions.create_policy(actor=SYSTEM, name=f"more-{Policy.objects.count()}", content={})


def serve_other(world: World) -> None:
    """Have one instance serve a model by name, and so no longer every one."""
    Instance.objects.filter(name="gpu-00").update(served_models=["other"])


def change_limits(world: World) -> None:
    for kind, name in (("stale_metrics", "age_s"), ("router_silent", "silent_s")):
        set_kind(actor=SYSTEM, name=kind, enabled=True, limits={name: 123})


def environment(world: World) -> None:
    world.patch("django.conf.settings.ENVIRONMENT", (Reading("POINTSMAN_X", "987", is_set=True),))


def constants(world: World) -> None:
    for name, value in (("CAPACITY", 1_777), ("KEPT_S", 60 * 77), ("KEPT_DOCUMENTS", 78), ("KEPT_SIMULATIONS", 79)):
        world.patch(f"dashboards.views.settings.{name}", value)


def retention(world: World) -> None:
    world.patch("django.conf.settings.AUDIT_RETENTION_DAYS", 1_234)
    world.patch("django.conf.settings.DECISION_RETENTION_DAYS", 567)


def versions(world: World) -> None:
    world.patch("dashboards.views.settings.__version__", "9.8.7")
    world.patch("django.conf.settings.DATA_DIR", world.folder)
    world.patch("dashboards.views.settings.platform.python_version", lambda: "4.5.6")
    world.patch("dashboards.views.settings.django.get_version", lambda: "7.8.9")


HITS = {"prompt_tokens": 900_000, "reported_prompt_tokens": 900_000, "reported_hit_tokens": 7}
TTFT, SCORE = ({name: HISTOGRAM} for name in ("ttft_us", "score"))
TPOT = {"tpot_us": {bucket - 8: count for bucket, count in HISTOGRAM.items()}}
"""Another, so that no strip shows what another has just shown."""

LIVE = Walked(
    "/",
    (
        ("requests", instances(requests=4_000), ("[data-stat=rate] .stat-number", "#instances [data-cell=rate]")),
        ("hits", instances(**HITS), ("[data-stat=hit] .stat-number",)),
        ("first tokens", instances(**TTFT), ("[data-stat=ttft] .stat-number", "#instances [data-cell=ttft]")),
        ("output tokens", instances(**TPOT), ("[data-stat=tpot] .stat-number",)),
        ("scores", instances(**SCORE), ("[data-stat=score] .stat-number", "#instances [data-cell=p95]")),
        ("BS", change_first(bs=1_000), ("#instances [data-cell=now-bs]", "[data-stat=load] .stat-number", "#courses")),
        ("queued prefill", instances(queued_prefill_tokens=77_000), ("#instances [data-cell=now-queued]",)),
        ("KV use", instances(kv_use=-0.43), ("#instances [data-cell=kv]",)),
        ("engine reports", instances(reported_age_s=555.0), ("#instances [data-cell=age]",)),
        (
            "a decision",
            decision,
            (
                "#decision-prompt",
                *(f"#instances [data-cell={key}]" for key in ("hit", "new", "queued", "p", "bs", "score", "times")),
            ),
        ),
        (
            "who waits and who was refused",
            workload(queued=9, refused={"queue_full": 31, "queue_timeout": 13}),
            ("#door .stat-number", "#door-reasons"),
        ),
        ("a published policy", publish_policy, ("#events",)),
        ("the state of an instance", change_first(state="draining"), ("#states",)),
        ("the fleet", World.change_fleet, ("#instances-note",)),
    ),
    literal=(
        r"60 s|15 min|1 h|2 h",  # the ranges that there are
        r"(live|stale) · [\d.]+ s",  # since the last frame came
        r"last 60 s|BS, 60 s",
        r"Each cell counts .* before the last 20 s\.",
    ),
)

DECISION = Walked(
    f"/decisions/{REQUEST_ID}/",
    (
        (
            "a decision",
            decision,
            (
                "#detail .sum",
                "#detail .sum + p",
                "#detail .card-head time",
                "#detail dd",
                *cells("#detail .decision-plane ~ .table-scroll", 2, 3, 4, 5, 6, 7, 8),
                *cells("#detail .alternatives", 3, 4, 5),
            ),
        ),
        ("policies", another_policy, ("#agreement",)),
        (
            "samples",
            World.change_samples,
            ("section[aria-label='Recent decisions'] tbody td", "section[aria-label='Recent decisions'] > p"),
        ),
        ("a published policy", publish_policy, ("#detail .alternatives .revision",)),
    ),
    literal=(r"weighted sum, L = \.7",),
)

INSTANCE = Walked(
    "/instances/gpu-00/",
    (
        ("BS", instances(bs=1_000), (*cells("[aria-label='All instances']", 3), ".gauges div:nth-child(1) dd")),
        (
            "queued prefill",
            instances(queued_prefill_tokens=77_000),
            (*cells("[aria-label='All instances']", 4), ".gauges div:nth-child(2) dd"),
        ),
        ("KV use", instances(kv_use=-0.43), (*cells("[aria-label='All instances']", 5), ".gauges div:nth-child(3) dd")),
        (
            "requests",
            instances(requests=4_000),
            (*cells("[aria-label='All instances']", 6), ".gauges div:nth-child(4) dd"),
        ),
        ("hits", instances(**HITS), (*cells("[aria-label='All instances']", 7), ".gauges div:nth-child(5) dd")),
        ("first tokens", instances(**TTFT), (".gauges div:nth-child(6) dd",)),
        ("prefix blocks", instances(prefix_blocks=8_000), (".gauges div:nth-child(7) dd",)),
        ("engine reports", instances(reported_age_s=9_999.0), (".gauges div:last-child dd",)),
        ("scores", instances(**SCORE), ("#detail .chart-caption",)),
        (
            "data-parallel ranks",
            World.change_ranks,
            (
                *cells("#ranks", 2, 3, 4, 5),
                "#pace-answers",
                "#pace > .facts",
                *cells("#rank-paces", 2, 3, 4, 5, 6),
                *cells("#pace .pace-steps", 2, 3, 4),
            ),
        ),
        (
            "the row",
            lambda world: world.change_row(
                Instance,
                probed_at=ago(days=9),
                state_since=ago(days=8),
                kv_capacity_tokens=99_999,
                lease_s=44,
                lease_expires_at=ago(days=7),
                epoch=6,
                hardware="h100",
                url="http://engine.test:81",
            ),
            (
                *cells("[aria-label='All instances']", 8, 9),
                "#detail .status-line .muted",
                "#detail .card-note",
                "#detail .detail-body > dl.facts",
            ),
        ),
    ),
    literal=(
        r"gpu-\d\d#\d",  # names of ranks
        r"Step of \d+|1|4|16|32|64|128",  # batches
        r"A decode step, with 1,000 tokens a sequence",
    ),
)

POLICY = Walked(
    "/policies/default/",
    (
        (
            "a published policy",
            publish_policy,
            (
                "[aria-labelledby=convergence-title] .card-note",
                "[aria-label='All policies']",
                "#policy-form .card-head .card-note",
                "#preview h3:first-of-type",
                ".timeline",
            ),
        ),
        ("workers", worker(config_revision=77), ("[aria-labelledby=convergence-title] table",)),
        ("BS", instances(bs=1_000), ("#preview .preview-part:first-child table",)),
        (
            "samples",
            World.change_samples,
            ("#preview .preview-part:last-child strong", "#preview .preview-part:last-child table"),
        ),
        ("a decision", decision, ("#preview .preview-part:last-child dl",)),
        (
            "the prompt",
            lambda world: world.patch("dashboards.views.policies.PREVIEW_TOKENS", 4_321),
            ("#preview h3 ~ h3",),
        ),
    ),
    settled="#preview .preview-part:last-child table",
)

WORKLOADS = Walked(
    "/workloads/",
    (
        ("a published policy", publish_policy, cells("#workloads", 2)),
        ("shadow decisions", workload(shadow_decisions=900, shadow_differs=90), cells("#workloads", 4)),
        ("requests", workload(requests=4_000), cells("#workloads", 5)),
        ("hits", workload(**HITS), cells("#workloads", 8)),
        ("first tokens", workload(**TTFT), cells("#workloads", 9)),
        ("output tokens", workload(**TPOT), cells("#workloads", 10)),
        ("scores", workload(**SCORE), cells("#workloads", 11)),
        ("errors", workload(errors=77), cells("#workloads", 12)),
        ("requests inside", workload(inside=5), cells("#workloads", 6)),
        ("the limit", rows(Workload, concurrent=43), cells("#workloads", 6)),
        ("who waits", workload(queued=9), (*cells("#workloads", 7), "#door-waiting")),
        (
            "refusals",
            workload(refused={"queue_full": 31, "queue_timeout": 13}),
            ("#door-refused-full", "#door-refused-late"),
        ),
        ("what counts as full", rows(AdmissionSettings, instance_requests=10_000), ("#door-full",)),
        ("the fleet", World.change_fleet, ("#door-full",)),
        ("admission", rows(AdmissionSettings, revision=77, updated_at=ago(hours=7)), ("#admission .card-note",)),
        (
            "weights",
            rows(ModelAlias, targets=[{"model": "m", "weight": 9.0}, {"model": "n", "weight": 27.0}]),
            tuple(f"#names tr:nth-child({row}) td:nth-child({cell})" for row, cell in ((1, 3), (1, 5), (2, 2), (2, 4))),
        ),
        (
            "who serves it",
            serve_other,
            ("#names tr:nth-child(1) td:nth-child(6)", "#names tr:nth-child(2) td:nth-child(5)"),
        ),
        ("workers", World.change_workers, ("#door-workers",)),
    ),
    literal=(
        r"TTFT p50 / p99",
        r"TPOT p50 / p99",
        r"requests wait, in fair turns by tenant, and then are refused with 503",
        r"Requests that arrive within this time \(0 to 10 ms\) are decided jointly; 0 decides each at once\.",
    ),
)

SHADOW = Walked(
    "/workloads/default/shadow/",
    (
        (
            "names of policies",
            rows(ShadowHour, live_policy="default@3", shadow_policy="other@4"),
            ("#reports h2", "#reports thead"),
        ),
        ("decisions", rows(ShadowHour, decisions=4_000, differs=77), ("#reports p:first-child",)),
        (
            "hits",
            rows(ShadowHour, live_hit_tokens=333, shadow_hit_tokens=444),
            ("#reports .card-body tr:first-child td.number",),
        ),
        (
            "products",
            rows(ShadowHour, live_product=1, shadow_product=99_999_999),
            ("#reports .card-body tr:nth-child(2) td.number",),
        ),
        (
            "moves",
            rows(ShadowMoveHour, decisions=55, live_policy="default@3", shadow_policy="other@4"),
            ("#reports .preview-part td.number",),
        ),
    ),
)

SLOS = Walked(
    "/slos/",
    (
        (
            "targets",
            rows(Slo, ttft_s=3.5, ttft_percentile=80.0, tpot_s=0.5, tpot_percentile=70.0),
            ("main .card-head .muted", *cells("main", 5, 7)),
        ),
        ("minutes", rows(SloMinute, requests=999, errors=9), cells("main", 2, 3)),
        ("good first tokens", rows(SloMinute, ttft_good=11.0), cells("main", 4, 5)),
        ("good output tokens", rows(SloMinute, tpot_good=12.0), cells("main", 6, 7, 8)),
    ),
    literal=(r"5m|1h|6h|3d|30d",),
)

ALERTS = Walked(
    "/alerts/",
    (
        (
            "the row",
            lambda world: world.change_row(Alert, summary="It is 99 s old", started_at=ago(days=9), recurrences=5),
            ("main .alert-what", "main tbody time", "main tbody .nowrap"),
        ),
        ("another alert", World.change_alerts, (".rail-count", "main .bulk .card-note")),
    ),
)

ALERT = Walked(
    "/alerts/{alert}/",
    (
        (
            "the row",
            lambda world: world.change_row(
                Alert,
                summary="It is 99 s old",
                started_at=ago(days=9),
                last_seen_at=ago(days=8),
                state_since=ago(days=7),
                values={"report_age_s": 77.7},
            ),
            ("main .alert-what", "main tbody time", "#detail > *"),
        ),
        (
            "the timeline",
            lambda world: world.change_row(TimelineEntry, at=ago(days=6), text="37"),
            ("#timeline",),
        ),
        ("another alert", World.change_alerts, (".rail-count", "main .bulk .card-note")),
    ),
)

TENANT = Walked(
    "/tenants/acme/",
    (
        (
            "limits",
            rows(Tenant, tokens_per_minute=90_009, requests_per_minute=808),
            ("main .with-list > :first-child",),
        ),
        ("keys", rows(InferenceKey, created_at=ago(days=9)), ("[aria-labelledby=keys-title] tbody",)),
    ),
)

AUDIT = Walked(
    "/audit/",
    (
        ("times", lambda world: world.change_row(AuditEntry, at=ago(days=9)), cells("main", 1)),
        ("another entry", lambda world: tenants.create_tenant(actor=SYSTEM, name="newer"), ("main .pages",)),
    ),
)

LAB = Walked(
    "/lab/",
    (
        (
            "limits",
            lambda world: world.patch("django.conf.settings.LAB_REQUESTS", 12_345),
            ("main .card-head .card-note",),
        ),
        (
            "a trace",
            lambda world: world.change_row(
                Trace,
                statistics={
                    "requests": 4_321,
                    "requests_per_s": 9.9,
                    "mean_prompt_tokens": 777.0,
                    "mean_output_tokens": 88.0,
                    "ideal_hit_ratio": 0.123,
                },
            ),
            cells("main", 3, 4, 5, 6, 7),
        ),
    ),
    literal=(
        r"hardware:count, apart by commas\..*",
        r"Times the trace's own rate: 1, or several: 0\.5, 1, 2",
        r"Find where each policy saturates, then run all at 30%, 50%, 70%, 85%, 100% of the best",
        r"scorer:name=value, apart by commas: .*",
    ),
)

SETTINGS = Walked(
    "/settings/",
    (
        (
            "a published policy",
            publish_policy,
            ("[aria-labelledby=workers-title] p strong",),
        ),
        ("the worker's configuration", worker(config_revision=40), cells("[aria-labelledby=workers-title]", 2)),
        ("requests in flight", worker(in_flight=900), cells("[aria-labelledby=workers-title]", 3)),
        (
            "prefix blocks",
            worker(prefix_blocks=5_000, prefix_capacity_blocks=70_000),
            cells("[aria-labelledby=workers-title]", 4),
        ),
        ("memory", worker(rss_bytes=900_000_000), cells("[aria-labelledby=workers-title]", 5)),
        (
            "the worker",
            lambda world: world.change_worker(version="3.2.1", started_unix_s=99_999.0),
            cells("[aria-labelledby=workers-title]", 8, 9),
        ),
        ("who hears it", lambda world: world.change_hearer(), cells("[aria-labelledby=workers-title]", 7)),
        ("versions", versions, ("[aria-labelledby=health-title] dl",)),
        (
            "the fleet",
            lambda world: Instance.objects.filter(name="gpu-02").update(state="removed"),
            cells("[aria-labelledby=health-title]", 2),
        ),
        ("retention", retention, cells("[aria-labelledby=retention-title]", 2)),
        ("constants", constants, cells("[aria-labelledby=retention-title]", 2)),
        ("limits of alerts", change_limits, ("[aria-labelledby=alerts-title] summary",)),
        ("the environment", environment, cells("[aria-labelledby=environment-title]", 2)),
        (
            "time",
            lambda world: world.patch("controlplane.telemetry.worker_book.Heard.age_s", lambda *_: 77.0),
            cells("[aria-labelledby=workers-title]", 6),
        ),
    ),
)

SIMULATION = Walked(
    "/lab/{simulation}/",
    (
        (
            "the row",
            lambda world: world.change_row(
                Simulation, created_at=ago(days=9), ended_at=ago(days=8), trace_name="own traffic, 77 min"
            ),
            (
                "[aria-label='All simulations'] td",
                "#detail .card-head .card-note:first-of-type",
                "#detail .status-line",
                "#detail dl.facts:first-of-type",
            ),
        ),
        (
            "the result",
            World.change_result,
            (*cells("#result-table", *range(1, 13)), ".lab-charts h2", ".lab-note", "#detail dl.facts:last-of-type"),
        ),
    ),
)

REPLAY = Walked(
    "/policies/default/replay/{simulation}/",
    (("the result", World.change_result, ("p strong", "table th", "td span.muted", *cells("table", 2, 3), "p.muted")),),
    settled="table",
)

SILENCES = Walked(
    "/alerts/silences/",
    (
        (
            "the row",
            lambda world: world.change_row(Silence, ends_at=timezone.now() + timedelta(days=9)),
            cells("main", 2),
        ),
        ("another silence", World.change_silences, ("#holding + .card-note",)),
        ("another alert", World.change_alerts, (".rail-count",)),
    ),
    literal=(r"One condition a line, all must hold: .*",),
)

PRELOADS = Walked(
    "/instances/+preloads/",
    (
        (
            "the row",
            lambda world: world.change_row(
                Preload, tokens=9_009, prompt_tokens=8_008, cached_tokens=707, attempts=6, created_at=ago(hours=2)
            ),
            ("[aria-labelledby=list-title] tbody",),
        ),
        ("another preload", World.change_preloads, ("[aria-labelledby=list-title] .card-note", "#preloads")),
        ("the limit", lambda world: world.patch("django.conf.settings.PRELOAD_PREFIXES", 77), (".preload-lead",)),
    ),
)

CHANNELS = Walked("/alerts/channels/", (("another alert", World.change_alerts, (".rail-count",)),))

PAGES = (
    LIVE,
    DECISION,
    INSTANCE,
    POLICY,
    WORKLOADS,
    SHADOW,
    SLOS,
    ALERTS,
    ALERT,
    TENANT,
    AUDIT,
    LAB,
    SETTINGS,
    SIMULATION,
    REPLAY,
    SILENCES,
    PRELOADS,
    CHANNELS,
)
