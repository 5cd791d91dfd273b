"""Writes what happened to a request into the counts."""

from enum import Enum
from typing import Final

from router.core.decision import Decision
from router.core.histogram import bucket_of
from router.proxy.answer import Answer
from router.proxy.failure import Failure
from router.proxy.intake import Intake
from router.proxy.stats import InstanceCounts, Tally, TenantCounts, WorkloadCounts, count
from router.proxy.usage import Usage, read_usage
from router.snapshot import ChosenPoint
from router.state.calibration import BytesPerToken
from router.state.instance import Instance

_US: Final = 1_000_000


class Outcome(Enum):
    """How a request ended; the value is the metric label."""

    OK = "ok"
    CLIENT_ERROR = "client_error"
    UPSTREAM_ERROR = "upstream_error"
    BROKEN = "broken"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    LIMITED = "limited"
    CRASHED = "crashed"


def outcome_of(answer: Answer, failure: Failure | None) -> Outcome:
    """Return how a request ended whose answer went to the client whole, ``failure`` told in it or not."""
    if failure is not None:
        return Outcome.UPSTREAM_ERROR
    return Outcome.CLIENT_ERROR if answer.status >= 400 else Outcome.OK


_OK: Final = Outcome.OK
ERRORS: Final = frozenset({Outcome.UPSTREAM_ERROR, Outcome.BROKEN, Outcome.REFUSED, Outcome.CRASHED})


class Ended:
    """A request at its end. Times are monotonic seconds; ``first_token_s`` is 0 when there was none."""

    __slots__ = (
        "answer",
        "decision",
        "ended_s",
        "first_token_s",
        "instance",
        "outcome",
        "started_s",
        "tenant",
        "text_bytes",
        "workload",
    )

    def __init__(self, intake: Intake, outcome: Outcome, started_s: float, ended_s: float) -> None:
        self.outcome = outcome
        self.text_bytes = intake.text_bytes
        self.workload = intake.request.workload
        self.tenant = intake.caller.tenant
        self.started_s = started_s
        self.first_token_s = 0.0
        self.ended_s = ended_s
        self.decision: Decision | None = None
        self.instance: Instance | None = None
        self.answer: Answer | None = None


def record_choice(tally: Tally, instance: Instance, decision: Decision) -> None:
    """Count a decision at the instance that it chose."""
    chosen, score = decision.chosen, decision.score
    if chosen is None or score is None:
        raise ValueError("a decision that chose nothing has no place in an instance's counts")
    instance_id = instance.config.id
    counts = tally.instance(instance_id)
    counts.requests += 1
    counts.prompt_tokens += decision.request.prompt_tokens
    counts.predicted_hit_tokens += chosen.hit_tokens
    p_token = chosen.p_token
    count(counts.p_token, bucket_of(p_token))
    count(counts.score, bucket_of(p_token * chosen.bs))
    if decision.above_cap:
        tally.workload(decision.request.workload).above_cap += 1
    tally.chosen.append(ChosenPoint(instance_id, p_token, chosen.bs, decision.request.workload))


def record_failure(tally: Tally, instance: Instance, failure: Failure) -> None:
    """Count a failed attempt."""
    counts = tally.instance(instance.config.id)
    counts.errors += 1
    count(counts.failures, failure.kind.value)


def record_shadow(tally: Tally, workload: str, decision: Decision, shadow: Decision) -> None:
    """Count a decision that a shadow policy made as well."""
    counts = tally.workload(workload)
    counts.shadow_decisions += 1
    chosen, other = decision.chosen, shadow.chosen
    if chosen is None or other is None:
        counts.shadow_differs += 1
        return
    if chosen.view.slot != other.view.slot:
        counts.shadow_differs += 1
        count(counts.shadow_moves, (chosen.view.name, other.view.name))
    counts.shadow_prompt_tokens += decision.request.prompt_tokens
    counts.shadow_live_hit_tokens += chosen.hit_tokens
    counts.shadow_hit_tokens += other.hit_tokens
    counts.shadow_live_product += chosen.p_token * chosen.bs
    counts.shadow_product += other.p_token * other.bs


def record_refusal(tally: Tally, workload: str, reason: str) -> None:
    """Count a request that was refused at the door."""
    count(tally.workload(workload).refused, reason)


def record_end(tally: Tally, calibration: BytesPerToken, ended: Ended) -> Usage | None:
    """Count a request that has ended, and learn from what the engine said about it; return that."""
    usage = _record_end(tally, calibration, ended)
    if ended.tenant is not None:
        _record_tenant(tally.tenant(ended.tenant, ended.workload), ended.outcome, usage)
    return usage


def _record_tenant(counts: TenantCounts, outcome: Outcome, usage: Usage | None) -> None:
    counts.requests += 1
    if outcome is Outcome.LIMITED:
        counts.refused += 1
    if usage is not None:
        counts.prompt_tokens += usage.prompt_tokens
        counts.output_tokens += usage.output_tokens


def _record_end(tally: Tally, calibration: BytesPerToken, ended: Ended) -> Usage | None:
    workload = tally.workload(ended.workload)
    workload.requests += 1
    count(workload.outcomes, ended.outcome.value)
    if ended.outcome is not _OK and ended.outcome in ERRORS:
        workload.errors += 1
    decision, instance = ended.decision, ended.instance
    chosen = None if decision is None else decision.chosen
    if decision is None or instance is None or chosen is None:
        return None
    workload.prompt_tokens += decision.request.prompt_tokens
    workload.predicted_hit_tokens += chosen.hit_tokens
    count(workload.score, bucket_of(chosen.p_token * chosen.bs))
    counts = tally.instance(instance.config.id)
    answer = ended.answer
    if answer is None or answer.status >= 300:
        return None
    usage = read_usage(answer.tail.bytes())
    if usage is not None:
        _record_usage(counts, workload, usage)
        calibration.learn(decision.request.model, ended.text_bytes, usage.prompt_tokens)
    _record_times(counts, workload, ended, answer.events if usage is None else usage.output_tokens)
    return usage


def _record_usage(counts: InstanceCounts, workload: WorkloadCounts, usage: Usage) -> None:
    workload.output_tokens += usage.output_tokens
    if usage.cached_tokens is not None:
        counts.reported_hit_tokens += usage.cached_tokens
        counts.reported_prompt_tokens += usage.prompt_tokens
        workload.reported_hit_tokens += usage.cached_tokens
        workload.reported_prompt_tokens += usage.prompt_tokens


def _record_times(counts: InstanceCounts, workload: WorkloadCounts, ended: Ended, output_tokens: int) -> None:
    if ended.first_token_s == 0:
        return
    ttft_us = int((ended.first_token_s - ended.started_s) * _US)
    bucket = bucket_of(ttft_us)
    count(counts.ttft_us, bucket)
    count(workload.ttft_us, bucket)
    counts.ttft_us_sum += ttft_us
    workload.ttft_us_sum += ttft_us
    if ended.outcome is not Outcome.OK:
        return
    e2e_us = int((ended.ended_s - ended.started_s) * _US)
    count(workload.e2e_us, bucket_of(e2e_us))
    workload.e2e_us_sum += e2e_us
    if output_tokens > 1 and ended.answer is not None and ended.answer.is_stream:
        tpot_us = int((ended.ended_s - ended.first_token_s) * _US / (output_tokens - 1))
        bucket = bucket_of(tpot_us)
        count(counts.tpot_us, bucket)
        count(workload.tpot_us, bucket)
        counts.tpot_us_sum += tpot_us
        workload.tpot_us_sum += tpot_us
