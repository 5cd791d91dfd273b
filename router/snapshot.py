"""The snapshot: what a router worker tells its control plane, up to four times a second.

Gauges (``bs``, ``queued_prefill_tokens``, ...) are the values at ``time_unix_s``. Counters and histograms cover
``interval_s``: everything since the last snapshot that was *delivered*, so a lost delivery loses no counts.
Histograms are sparse, with the fixed log-spaced buckets of :mod:`router.core.histogram`; those of several workers can
be added. Durations are in microseconds.
"""

from enum import Enum

import msgspec

from router.core.hardware import HardwareProfile
from router.core.histogram import Counts
from router.core.instance import InstanceState
from router.core.terms import HotspotRule

SCHEMA = 1


class CandidateLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What else was known of an instance in a decision: what other rules than the product read."""

    running: int
    waiting: int
    own_requests: int
    active_kv_tokens: int
    kv_use: float | None
    windowed_prefill_tokens: int
    last_chosen: int


class CandidateTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the optional terms of policies read of an instance in a decision."""

    requests: int
    """Requests there, this one not included; ``CandidateSample.bs`` may count a cold instance's as more."""
    takes_requests: bool
    """Whether its state takes new requests."""
    barred: bool = False
    """Whether it was out under every policy: by its state, failures or model, or because another one was demanded."""
    spot: bool = False
    cold_for_s: float | None = None
    """How long it had been cold; None when it was warm."""
    warmth: float = 0.0
    hardware: int | None = None
    """Its profile: a place in ``DecisionSample.hardware``; None where it has none."""
    observed: int | None = None
    """The same for what was observed of its steps."""


class HotspotSample(msgspec.Struct, frozen=True, kw_only=True):
    """What the hotspot rule of the deciding policy made of a request."""

    rule: HotspotRule
    mitigated: str = ""
    """Short name of the request's prefix class when it was to be kept away from its holders; else empty."""
    holders: tuple[str, ...] = ()
    """Those instances: out for it, or for something else, or not, where nothing else was left."""


class Residency(Enum):
    """How it is known what an instance's KV cache holds."""

    EVENTS = "events"
    """By the engine's own word."""
    ESTIMATED = "estimated"
    """From the requests that were placed there."""


class CandidateSample(msgspec.Struct, frozen=True, kw_only=True):
    """One instance in one decision: its factors, or why it was out (``filtered``)."""

    instance: str
    hit_tokens: int
    new_tokens: int
    queued_prefill_tokens: int
    p_token: int
    bs: int
    score: float | None = None
    filtered: str | None = None
    p_offset: int = 0
    """Tokens of ``p_token`` that stand for a cold start."""
    factor: float = 1.0
    """What the score was multiplied with (spot instances)."""
    exact: bool = False
    """Whether ``hit_tokens`` is the engine's own word (KV events) and not an estimate."""
    load: CandidateLoad | None = None
    terms: CandidateTerms | None = None


class DecisionSample(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, explained; candidates are sorted by score, those filtered out last."""

    request_id: str
    time_unix_s: float
    model: str
    workload: str
    policy: str
    scorer: str
    a: float
    b: float
    prompt_tokens: int
    estimated: bool
    chosen: str | None
    candidates: tuple[CandidateSample, ...]
    c: float | None = None
    """Exponent of BS on the queued part, where it has one of its own."""
    preferred: str | None = None
    """The instance that last served the session: it wins ties."""
    hardware: tuple[HardwareProfile, ...] = ()
    """The profiles that ``CandidateTerms`` points to."""
    watching: bool | None = None
    """Whether any prefix class was on watch for a hotspot at that moment; None where it was not told."""
    hotspot: HotspotSample | None = None
    """None where the deciding policy has no such rule."""


class EventsSample(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker knows what an instance's KV cache holds. Counts are since the events were subscribed to."""

    residency: Residency = Residency.ESTIMATED
    reason: str = ""
    """Why it is only estimated; empty otherwise."""
    connected: bool | None = None
    """Whether the publisher can be reached; None where no events are followed, as with everything below."""
    lag_s: float | None = None
    """Age of the newest events when they were applied; None before the first."""
    blocks: int | None = None
    """KV blocks that the engine told it holds."""
    gaps: int = 0
    restarts: int = 0
    losses: int = 0
    """Times that events could not be had any more, and everything told before was forgotten."""
    unreadable: int = 0
    """Messages and events that could not be read."""
    last_loss: str = ""
    learnt: int = 0
    """Texts whose tokens the engine's tokenizer told."""
    lessons_dropped: int = 0
    """Texts that were not learnt: too many waited, or no tokens came."""
    checked: int = 0
    """Newest answers of which the predicted and the reported hit are compared."""
    check_error_blocks: float | None = None
    """The 95th percentile of the size of their differences, in KV blocks; None before there are any."""
    check_wrong_share: float | None = None
    """Share of them that differ by more than one block."""
    disbelieved: bool = False
    """Whether they differed so often that the events are not believed for now."""


class PaceSample(msgspec.Struct, frozen=True, array_like=True):
    """What an instance's steps cost by the requests that one worker saw it serve; see
    :class:`router.core.hardware.HardwareProfile`."""

    t0_s: float
    prefill_s_per_token: float
    decode_s_per_sequence: float
    decode_s_per_kv_token: float
    first_token_overhead_s: float
    """What a first token takes beyond prefill: network, tokenizer, the wait for the running step."""
    prefill_samples: int
    decode_samples: int
    relative_error: float
    """Median distance of what was observed from what these costs say."""
    enough: bool
    """Whether policies that ask for observed hardware use it."""


class InstanceSample(msgspec.Struct, frozen=True, kw_only=True):
    """One instance, seen by one worker."""

    id: str
    name: str
    state: InstanceState
    ejected: bool
    bs: int
    running: int
    waiting: int
    own_requests: int
    queued_prefill_tokens: int
    kv_use: float | None
    reported_running: int | None
    reported_waiting: int | None
    reported_age_s: float | None
    """Seconds since the engine last reported; None when it never did."""
    prefix_blocks: int
    models: tuple[str, ...] = ()
    """What it is registered to serve; empty: any."""
    requests: int
    errors: int
    prompt_tokens: int
    predicted_hit_tokens: int
    reported_hit_tokens: int
    """Cached tokens that engines reported in usage, for the requests that carried usage."""
    reported_prompt_tokens: int
    """Prompt tokens of the requests counted in ``reported_hit_tokens``."""
    p_token: Counts
    score: Counts
    ttft_us: Counts
    tpot_us: Counts
    events: EventsSample = EventsSample()
    pace: PaceSample | None = None
    """None until enough was seen for a first estimate."""
    ranks: "tuple[InstanceSample, ...]" = ()
    """Its data-parallel ranks, where a control plane has put them together; workers tell each as an instance."""


class ShadowMove(msgspec.Struct, frozen=True, array_like=True):
    """How many decisions a shadow policy would have sent from one instance to another, by their names."""

    live: str
    shadow: str
    decisions: int


class WorkloadSample(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, seen by one worker."""

    name: str
    policy: str
    requests: int
    errors: int
    prompt_tokens: int
    output_tokens: int
    predicted_hit_tokens: int
    reported_hit_tokens: int
    reported_prompt_tokens: int
    score: Counts
    ttft_us: Counts
    tpot_us: Counts
    e2e_us: Counts
    shadow_policy: str | None = None
    """The policy that decided as well, without being obeyed (``name@revision``)."""
    shadow_decisions: int = 0
    shadow_differs: int = 0
    """Of the shadow decisions, how many chose another instance."""
    shadow_moves: tuple[ShadowMove, ...] = ()
    shadow_prompt_tokens: int = 0
    """Of shadow decisions in which both policies chose an instance, as are the four below."""
    shadow_live_hit_tokens: int = 0
    """Expected hits at the instances that were chosen; ``shadow_hit_tokens`` at those that the shadow chose."""
    shadow_hit_tokens: int = 0
    shadow_live_product: int = 0
    """P-token x BS of the instances that were chosen, added up; ``shadow_product`` of those that the shadow chose."""
    shadow_product: int = 0
    above_cap: int = 0
    """Requests for which every instance was above the policy's P-token cap, and the least bad one was taken."""
    queued: int = 0
    """Requests that wait for room now."""
    inside: int | None = None
    """Requests being served now, counted towards the workload's limit; None where it has none."""
    refused: dict[str, int] = {}
    """Requests refused at the door, by reason (``queue_full``, ``queue_timeout``)."""


class LearntSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker has learnt for one policy (``name@revision``) that learns."""

    policy: str
    reference_s: float | None = None
    """Time to first token in the middle of the kinds of hardware; None until the first round of answers is over."""
    exponents: dict[str, float] = {}
    """By kind of hardware: how much harder long prefill is judged there (0: not at all)."""
    high_load: bool | None = None
    """Whether load is high, so that an exponent is lowered; None where the policy does not ask."""


class HotClassSample(msgspec.Struct, frozen=True, kw_only=True):
    """One prefix class in one worker's sliding window (``Snapshot.hot_window_s``).

    ``requests``, ``hits`` and ``mitigated_requests`` of several workers can be added; the share of a class in all of
    them is the sum of ``requests`` over that of ``Snapshot.hot_arrivals``, and its holders are the union.
    """

    id: str
    """16 hex digits; the same in every worker where the configuration has a ``prefix_seed``."""
    model: str
    prefix_tokens: int
    """About how many tokens the class shares at least (its key's depth)."""
    requests: int
    """Arrivals of the class, too many by ``error`` at most."""
    error: int
    hits: int
    """Of these, how many went to an instance that held the prefix."""
    share: float
    """``requests`` over this worker's arrivals, 0..1."""
    holders: tuple[str, ...]
    """Ids of the instances taking requests that are expected to hold the prefix (M)."""
    ready: int
    """Instances taking requests (N)."""
    consecutive: int
    """Requests of the class in a row for which no instance outside the holders scored better."""
    watched: bool
    mitigated: bool
    mitigated_requests: int
    text_bytes: int = 0
    """Size of the text that is kept for preloading; 0: none is."""


class TenantSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one tenant used of one workload, by requests that ended in the interval; tokens as engines counted them."""

    tenant: str
    workload: str
    requests: int
    refused: int
    """Requests that a quota refused."""
    prompt_tokens: int
    output_tokens: int


class QuotaUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker has let in of one tenant: totals since the worker began, which only settling lowers, and now.

    ``tokens_left`` and ``requests_left`` say what it may let in until it hears more; None where there is no limit.
    """

    tenant: str
    tokens: int
    requests: int
    concurrent: int
    tokens_left: float | None = None
    requests_left: float | None = None


class OtherWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What another worker has let in."""

    worker: str
    """Its name and start: one life of a worker."""
    is_younger: bool
    """Whether it began after the worker that is told of it."""
    seq: int = 0
    """Of its snapshot that this is from: there is news of it when this has moved."""
    quotas: tuple[QuotaUse, ...] = ()


class SnapshotAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the control plane says to a snapshot: what the other live workers have let in, and what it wants to know."""

    others: tuple[OtherWorker, ...] = ()
    whole: bool = True
    """Whether ``others`` are all that there are: False while the control plane's processes do not hear one another."""
    explain: tuple[str, ...] = ()
    """Ids of requests whose decisions are wanted with the next snapshot."""


class Explained(msgspec.Struct, frozen=True):
    """The answer to a question about a request: its decision, or None where this worker does not remember it."""

    request_id: str
    decision: DecisionSample | None


class ChosenPoint(msgspec.Struct, frozen=True, array_like=True):
    """Where one recent request was placed on the score plane."""

    instance: str
    p_token: int
    bs: int
    workload: str = ""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one worker at one moment, and what it did since its last delivered snapshot."""

    schema: int = SCHEMA
    worker: str
    version: str
    started_unix_s: float
    seq: int
    time_unix_s: float
    interval_s: float
    config_revision: int
    config_error: str | None
    """Why the newest document was refused, while an older one is in force."""
    in_flight: int
    prefix_blocks: int
    prefix_bytes: int
    prefix_capacity_blocks: int
    rss_bytes: int
    instances: tuple[InstanceSample, ...]
    workloads: tuple[WorkloadSample, ...]
    chosen: tuple[ChosenPoint, ...]
    """The newest choices of the interval, at most 128."""
    last_decision: DecisionSample | None
    tenants: tuple[TenantSample, ...] = ()
    hot_window_s: float = 0.0
    """How much the sliding window of ``hot_arrivals`` and ``hot_classes`` covers by now; all of it after a minute."""
    hot_window_whole: bool = True
    """Whether that is its whole length. Shares of less are of too few requests to call a class hot."""
    hot_arrivals: int = 0
    """Requests that arrived in the window."""
    hot_classes: tuple[HotClassSample, ...] = ()
    """The classes with the most requests in the window, five or as many as texts are kept of, and those on watch."""
    learnt: tuple[LearntSample, ...] = ()
    """Of every policy in force that learns."""
    quotas: tuple[QuotaUse, ...] = ()
    """What this worker has let in, of every tenant."""
    explained: tuple[Explained, ...] = ()
    """Answers to what the answer to the last snapshot asked."""


def parse_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot.

    :raises msgspec.ValidationError: for a document of another shape.
    """
    return msgspec.json.decode(data, type=Snapshot)


def parse_answer(data: bytes) -> SnapshotAnswer:
    """Read what the control plane says to a snapshot.

    :raises msgspec.DecodeError: when it is none.
    """
    return msgspec.json.decode(data, type=SnapshotAnswer)


def dump_answer(answer: SnapshotAnswer) -> bytes:
    """Serialise an answer as JSON."""
    return msgspec.json.encode(answer)


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Serialise a snapshot as JSON."""
    return msgspec.json.encode(snapshot)
