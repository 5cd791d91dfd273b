"""Every kind of alert, in one table: what it means, what to do, when it is raised.

Evaluations happen every ten seconds, so a patience of three is half a minute.
"""

from collections.abc import Mapping

from controlplane.alerts.evaluators import (
    above_cap,
    admission,
    booking_drift,
    config_not_converged,
    hit_mismatch,
    hotspot_class,
    instance_unreachable,
    load_variance,
    quota_exhausted,
    router_silent,
    score_tail,
    slo_burn,
    stale_metrics,
    starvation,
)
from controlplane.alerts.kind import Kind
from controlplane.alerts.settling import Patience
from controlplane.errors import NotFound

_TABLE = (
    Kind(
        name=hotspot_class.KIND,
        title="Hot prefix",
        meaning="One prefix class asks for more than its share of instances: its arrivals times all instances exceed "
        "the instances that hold its prefix (x N > |M|). Routing by cache hits piles it up on those few.",
        what_to_do=(
            "Nothing at first: its prefix is brought to the instances that lack it (Preloading, under Instances, shows "
            "how far that is), and where the policy has hotspots on, its requests are kept away from the holders.",
            "Look at the score plane: the holders stand apart, up and to the right.",
            "If it lasts although everybody holds the prefix, the fleet is too small for it: add instances.",
            "If one client causes it, find its tenant and set a quota.",
        ),
        evaluate=hotspot_class.hotspot_class,
        limits=hotspot_class.HotspotClassLimits(),
        patience=Patience(raise_after=1, resolve_after=6),
    ),
    Kind(
        name=score_tail.KIND,
        title="P-token x BS tail",
        meaning="Many decisions are far above the usual 95th percentile of P-token x BS: even the best instance is a "
        "bad one.",
        what_to_do=(
            "Compare the load of the instances: if all are high, the fleet is too small for the traffic.",
            "If one workload stands out, look at its prompt lengths and hit ratio: long prompts without hits do this.",
            "Look for instances that have left the rotation in the same minutes.",
            "Consider a latency cap or shedding in the workload's policy.",
        ),
        evaluate=score_tail.score_tail,
        limits=score_tail.ScoreTailLimits(),
        patience=Patience(raise_after=2, resolve_after=3),
    ),
    Kind(
        name=above_cap.KIND,
        title="P-token cap exceeded",
        meaning="Requests of a workload found every instance above its policy's P-token cap, and went to the least bad "
        "one: the latency that the cap stands for is not kept.",
        what_to_do=(
            "Compare the queued prefill of the instances: if it is high everywhere, the fleet is too small for the "
            "prompts that arrive.",
            "If prompts alone are longer than the cap, the cap is too small for this workload.",
            "Let the policy shed what cannot be served in time (above_cap: shed), or raise the cap.",
        ),
        evaluate=above_cap.above_cap,
        limits=above_cap.AboveCapLimits(),
        patience=Patience(raise_after=2, resolve_after=3),
    ),
    Kind(
        name=admission.KIND,
        title="Waiting at the door",
        meaning="Requests of a workload wait long for room, or are refused with 503 because too many wait or one "
        "waited too long: the fleet is full, or the workload is at its limit.",
        what_to_do=(
            "Look at Workloads: “At once” beside its limit says whether the workload is at its own limit, and “When "
            "the fleet is full” whether every instance is full.",
            "At its own limit: raise it, if instances have room; the other workloads then get less.",
            "A full fleet: add instances, or let an instance take more requests before it counts as full.",
            "Refused although instances have room: raise how many may wait, or for how long. One tenant that causes it "
            "needs a quota.",
        ),
        evaluate=admission.admission,
        limits=admission.AdmissionLimits(),
        patience=Patience(raise_after=2, resolve_after=3),
    ),
    Kind(
        name=load_variance.KIND,
        title="Uneven load",
        meaning="The busiest instance carries several times the mean number of requests.",
        what_to_do=(
            "Look for a hot prefix: it draws requests to the instances that hold it.",
            "Look at the busiest instance's speed: a slow engine keeps its requests for longer.",
            "Check the policy's exponents: a small b lets cache hits win over load.",
        ),
        evaluate=load_variance.load_variance,
        limits=load_variance.LoadVarianceLimits(),
        patience=Patience(raise_after=3, resolve_after=3),
    ),
    Kind(
        name=starvation.KIND,
        title="Starving instance",
        meaning="An instance is in rotation and gets almost no requests while the others are busy.",
        what_to_do=(
            "Open a decision and read why the instance lost or was filtered: model, breaker, queued prefill, state.",
            "Compare its queued prefill with its engine: a booking that is never released repels all traffic.",
            "If it has just joined, wait for it to be warm.",
        ),
        evaluate=starvation.starvation,
        limits=starvation.StarvationLimits(),
        patience=Patience(raise_after=3, resolve_after=3),
    ),
    Kind(
        name=stale_metrics.KIND,
        title="Stale engine metrics",
        meaning="An engine stopped reporting its running and waiting requests. Routers go on with their own bookings, "
        "and do not see what others put on the instance.",
        what_to_do=(
            "Fetch /metrics of the engine from the router's machine, and see how long it takes.",
            "An engine that serves requests but not metrics is often out of CPU: its API process is busy.",
            "Check that nothing between router and engine caches or blocks the path.",
        ),
        evaluate=stale_metrics.stale_metrics,
        limits=stale_metrics.StaleMetricsLimits(),
        patience=Patience(raise_after=2, resolve_after=2),
    ),
    Kind(
        name=booking_drift.KIND,
        title="Bookings and engine disagree",
        meaning="For a minute, an engine has reported many more or many fewer requests than routers have booked there.",
        what_to_do=(
            "More than booked: look for clients that go to the engine past the router.",
            "Fewer than booked: look for connections that hang after the engine has finished.",
            "Check that every router worker reports: bookings of a silent one are missing in the sum.",
        ),
        evaluate=booking_drift.booking_drift,
        limits=booking_drift.BookingDriftLimits(),
        patience=Patience(raise_after=3, resolve_after=3),
    ),
    Kind(
        name=hit_mismatch.KIND,
        title="Predicted and actual hits disagree",
        meaning="The share of cached tokens that routers predict and that an engine reports differ by far, so that "
        "P-token, and every decision, is wrong for this instance.",
        what_to_do=(
            "Check that prefix caching is on in the engine, and that its KV block size is the registered one.",
            "Check the chat template: a template that puts something new first makes every prompt different.",
            "If the engine was restarted, its cache is empty: the prediction corrects itself within minutes.",
            "Connect its KV events: residency is then exact.",
            "If its KV events are followed, routers stop believing them while they disagree, and try again by "
            "themselves. Check that one engine, and not several, stands behind the address; that nothing between "
            "router and engine changes prompts; and that its /tokenize uses the chat template of its answers.",
        ),
        evaluate=hit_mismatch.hit_mismatch,
        limits=hit_mismatch.HitMismatchLimits(),
        patience=Patience(raise_after=3, resolve_after=3),
    ),
    Kind(
        name=instance_unreachable.KIND,
        title="Unreachable instance",
        meaning="Several probes in a row failed, or the lease ran out. The instance takes no requests.",
        what_to_do=(
            "Read the reason: it says which path did not answer, and how.",
            "Look at the engine's own log for crashes and out-of-memory errors.",
            "If it is gone for good, remove it; if somebody works on it, put it into maintenance.",
        ),
        evaluate=instance_unreachable.instance_unreachable,
        limits=instance_unreachable.InstanceUnreachableLimits(),
        patience=Patience(raise_after=1, resolve_after=2),
    ),
    Kind(
        name=slo_burn.KIND,
        title="SLO burn",
        meaning="Requests of a workload miss a target so often that its error budget is used up far too early.",
        what_to_do=(
            "Look at the other open alerts first: an unreachable instance or a hot prefix often is the cause.",
            "Compare TTFT and TPOT: a bad TTFT is prefill piling up, a bad TPOT is batches that are too large.",
            "If the fleet is simply too small, shed or cap the workload, or add instances.",
        ),
        evaluate=slo_burn.slo_burn,
        limits=slo_burn.SloBurnLimits(),
        patience=Patience(raise_after=2, resolve_after=6),
    ),
    Kind(
        name=quota_exhausted.KIND,
        title="Quota exhausted",
        meaning="A tenant has used up its requests, tokens or concurrency, and is answered 429 until some are free.",
        what_to_do=(
            "Look at the tenant's use: a loop of retries makes it worse, and ends with the loop.",
            "If the demand is right, raise the quota of the tenant.",
        ),
        evaluate=quota_exhausted.quota_exhausted,
        limits=quota_exhausted.QuotaExhaustedLimits(),
        patience=Patience(raise_after=2, resolve_after=3),
    ),
    Kind(
        name=config_not_converged.KIND,
        title="Configuration not applied",
        meaning="A router worker routes by an older configuration than the newest, or refused it.",
        what_to_do=(
            "If it was refused, the reason is in the summary: change the policy or instance that it names.",
            "If it is late, check that the worker reaches the web process, and that its token is valid.",
        ),
        evaluate=config_not_converged.config_not_converged,
        limits=config_not_converged.ConfigNotConvergedLimits(),
        patience=Patience(raise_after=2, resolve_after=1),
    ),
    Kind(
        name=router_silent.KIND,
        title="Silent router worker",
        meaning="A router worker stopped reporting. It may still route; nobody can see it.",
        what_to_do=(
            "Ask it: /livez and /readyz on its own port.",
            "Look at its log for errors of delivery: the web process may have been away.",
            "If it was stopped on purpose, the alert resolves by itself within ten minutes.",
        ),
        evaluate=router_silent.router_silent,
        limits=router_silent.RouterSilentLimits(),
        patience=Patience(raise_after=1, resolve_after=2),
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _TABLE}


def kind_named(name: str) -> Kind:
    """Return a kind.

    :raises NotFound: when there is none of that name.
    """
    try:
        return KINDS[name]
    except KeyError:
        raise NotFound(f"There is no kind of alert named {name}; there are: {', '.join(KINDS)}.") from None
