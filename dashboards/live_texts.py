"""The words of the live page that are said once and used by template and script: statistics and table columns."""

from typing import NamedTuple

from router.core.instance import InstanceState


class Stat(NamedTuple):
    """One number of the headline."""

    key: str
    label: str
    help: str


class TableColumn(NamedTuple):
    """One column of the instances table; ``key`` is what the script calls it."""

    key: str
    label: str
    help: str
    number: bool = True
    starts_group: bool = False
    sortable: bool = True


STATS = (
    Stat("rate", "Requests/s", "Requests routed per second, over the last ten seconds"),
    Stat("ttft", "TTFT p50 / p99", "Time to first token over the last minute; the line is the median of each second"),
    Stat("tpot", "TPOT p50 / p99", "Time per output token over the last minute; the line is the median of each second"),
    Stat("hit", "KV hit", "Share of prompt tokens found in KV caches: as engines report it, else as predicted"),
    Stat("load", "Load max / mean", "Busiest instance's mean BS over the mean of all, last minute; 1.0 is even"),
    Stat("score", "P95 of P-token × BS", "95th percentile of the product at which requests were placed, last minute"),
)
DOOR = Stat(
    "door",
    "Waiting / refused",
    "Requests that wait for room now, and those refused at the door in the last minute: full, because too many waited "
    "already, or late, because the wait was too long. It is here while a workload or the instances have a limit",
)
REFUSALS = {"queue_full": "full", "queue_timeout": "late"}
"""Why requests are refused at the door, in words."""


class Range(NamedTuple):
    """How far back the page looks."""

    minutes: int
    label: str


class Course(NamedTuple):
    """One strip of the history; ``key`` is what the script calls it."""

    key: str
    label: str
    help: str


class Mark(NamedTuple):
    """A sort of event, and the sign that stands for it."""

    kind: str
    sign: str
    label: str


RANGES = (Range(1, "60 s"), Range(15, "15 min"), Range(60, "1 h"), Range(120, "2 h"))
COURSES = (
    Course("ttft", "TTFT", "Time to first token: median as a line, 99th percentile as a dashed one"),
    Course("tpot", "TPOT", "Time per output token: median as a line, 99th percentile as a dashed one"),
    Course("hit", "KV hit", "Share of prompt tokens found in KV caches"),
    Course("load", "Load max / mean", "Busiest instance's BS over the mean; of an instance: its own over the mean"),
)
MARKS = (
    Mark("policy", "◆", "policy"),
    Mark("rotation", "▽", "instance in or out"),
    Mark("restart", "↻", "engine restart"),
    Mark("alert", "▲", "alert"),
)

COLUMNS = (
    TableColumn("name", "Instance", "Name and state", number=False),
    TableColumn("hit", "Hit", "Prompt tokens that the instance is expected to have cached", starts_group=True),
    TableColumn("new", "New", "Prompt tokens that it would have to prefill"),
    TableColumn("queued", "Queued", "Prefill tokens already routed there and not yet done"),
    TableColumn("p", "P-token", "Queued and new together"),
    TableColumn("bs", "BS", "Requests there, this one included"),
    TableColumn("score", "Score", "What the policy made of P-token and BS; the smallest wins"),
    TableColumn("times", "vs chosen", "Score over that of the chosen one"),
    TableColumn("now-bs", "BS", "Requests there now, waiting and running", starts_group=True),
    TableColumn(
        "course", "BS, 60 s", "Requests there over the last minute; the scale is the same in every row", sortable=False
    ),
    TableColumn("now-queued", "Queued", "Prefill tokens queued there now"),
    TableColumn("kv", "KV use", "Share of KV blocks in use, as the engine reports it"),
    TableColumn("rate", "Req/s", "Requests routed there per second"),
    TableColumn("ttft", "TTFT p50", "Median time to first token there"),
    TableColumn("p95", "P95 score", "95th percentile of the product at which requests were placed there"),
    TableColumn("age", "Age", "Since the engine last reported its own numbers"),
)

STATES = (*(state.value for state in InstanceState), "ejected", "stale")
