"""A make-believe router worker over a small make-believe fleet: snapshots that look like real ones.

Requests come as a Poisson stream of a few prompt classes that share prefixes; each is placed by the product of P-token
and BS. Engines prefill at a fixed rate and decode for a while. Deterministic for a seed; time is a parameter.
"""

import math
import random
from dataclasses import dataclass, field

from router.core.histogram import Counts, record
from router.core.instance import InstanceState
from router.snapshot import CandidateSample, ChosenPoint, DecisionSample, InstanceSample, Snapshot, WorkloadSample

BLOCK_TOKENS = 16
CLASSES = 24


@dataclass
class Totals:
    """What was counted since the last snapshot."""

    requests: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    output_tokens: int = 0
    p_token: Counts = field(default_factory=dict)
    score: Counts = field(default_factory=dict)
    ttft_us: Counts = field(default_factory=dict)
    tpot_us: Counts = field(default_factory=dict)
    e2e_us: Counts = field(default_factory=dict)


@dataclass
class FakeInstance:
    """One engine: prefill still queued, ends of running requests, prefixes it holds."""

    name: str
    state: InstanceState = InstanceState.READY
    models: tuple[str, ...] = ("qwen3-30b",)
    queued_tokens: float = 0.0
    ends_s: list[float] = field(default_factory=list)
    cached_tokens: dict[int, int] = field(default_factory=dict)
    since: Totals = field(default_factory=Totals)

    @property
    def id(self) -> str:
        """Return an identity that is not the name, as in real fleets."""
        return f"id-of-{self.name}"

    def advance(self, now_s: float, elapsed_s: float, prefill_rate: float) -> None:
        """Let time pass."""
        self.queued_tokens = max(0.0, self.queued_tokens - elapsed_s * prefill_rate)
        self.ends_s = [end_s for end_s in self.ends_s if end_s > now_s]


class FakeWorker:
    """Makes one snapshot per ``step``."""

    def __init__(
        self,
        instances: int = 8,
        rate: float = 40.0,
        *,
        name: str = "router-0",
        seed: int = 1,
        start_unix_s: float = 0.0,
        workload: str = "coder",
    ) -> None:
        self.name = name
        self.workload = workload
        self.rate = rate
        self.instances = [FakeInstance(f"gpu-{number:02}") for number in range(instances)]
        self.started_unix_s = start_unix_s
        self.seq = 0
        self.prefill_rate = 20_000.0
        self._random = random.Random(seed)
        self._now_s = start_unix_s
        self._chosen: list[ChosenPoint] = []
        self._decision: DecisionSample | None = None
        self._workload = Totals()
        self._requests = 0

    def restart(self, unix_s: float) -> None:
        """Begin a new life: counters of snapshots start again."""
        self.started_unix_s = unix_s
        self.seq = 0

    def step(self, elapsed_s: float = 0.25) -> Snapshot:
        """Let time pass, with traffic, and report on it."""
        self._now_s += elapsed_s
        for instance in self.instances:
            instance.advance(self._now_s, elapsed_s, self.prefill_rate)
        for _ in range(self._poisson(self.rate * elapsed_s)):
            self._place_request()
        return self._snapshot(elapsed_s)

    def _poisson(self, mean: float) -> int:
        limit, product, count = math.exp(-mean), self._random.random(), 0
        while product > limit:
            product *= self._random.random()
            count += 1
        return count

    def _place_request(self) -> None:
        prefix = min(int(self._random.expovariate(0.25)), CLASSES - 1)
        prompt = 512 + 256 * prefix + int(self._random.lognormvariate(6.6, 0.9))
        samples = [self._candidate(instance, prefix, prompt) for instance in self.instances]
        scored = sorted((s for s in samples if s.score is not None), key=lambda s: (s.score, self._random.random()))
        chosen = scored[0] if scored else None
        self._requests += 1
        self._decision = DecisionSample(
            request_id=f"{self.name}-{self._requests:06}",
            time_unix_s=self._now_s,
            model="qwen3-30b",
            workload=self.workload,
            policy="default@1",
            scorer="multiplicative",
            a=1.0,
            b=1.0,
            prompt_tokens=prompt,
            estimated=True,
            chosen=chosen.instance if chosen else None,
            candidates=(*scored, *(s for s in samples if s.score is None)),
        )
        if chosen is not None:
            self._book(chosen, prefix, prompt)

    def _candidate(self, instance: FakeInstance, prefix: int, prompt: int) -> CandidateSample:
        held = min(instance.cached_tokens.get(prefix, 0), prompt - 1)
        hit = held - held % BLOCK_TOKENS
        p_token = int(instance.queued_tokens) + prompt - hit
        bs = len(instance.ends_s) + 1
        out = None if instance.state is InstanceState.READY else f"state {instance.state}"
        return CandidateSample(
            instance=instance.name,
            hit_tokens=hit,
            new_tokens=prompt - hit,
            queued_prefill_tokens=int(instance.queued_tokens),
            p_token=p_token,
            bs=bs,
            score=None if out else float(p_token * bs),
            filtered=out,
        )

    def _book(self, chosen: CandidateSample, prefix: int, prompt: int) -> None:
        instance = next(i for i in self.instances if i.name == chosen.instance)
        ttft_s = 0.02 + chosen.p_token / self.prefill_rate
        tpot_s = 0.008 + 0.0004 * chosen.bs * self._random.uniform(0.8, 1.3)
        output = 20 + int(self._random.expovariate(1 / 180))
        instance.queued_tokens += chosen.new_tokens
        instance.ends_s.append(self._now_s + ttft_s + tpot_s * output)
        instance.cached_tokens[prefix] = 512 + 256 * prefix
        self._chosen.append(ChosenPoint(instance.id, chosen.p_token, chosen.bs, self.workload))
        for totals in (instance.since, self._workload):
            totals.requests += 1
            totals.prompt_tokens += prompt
            totals.hit_tokens += chosen.hit_tokens
            totals.output_tokens += output
            record(totals.p_token, chosen.p_token)
            record(totals.score, chosen.p_token * chosen.bs)
            record(totals.ttft_us, ttft_s * 1e6)
            record(totals.tpot_us, tpot_s * 1e6)
            record(totals.e2e_us, (ttft_s + tpot_s * output) * 1e6)

    def _snapshot(self, interval_s: float) -> Snapshot:
        self.seq += 1
        chosen, self._chosen = self._chosen[-128:], []
        workload, self._workload = self._workload, Totals()
        return Snapshot(
            worker=self.name,
            version="0.1.0",
            started_unix_s=self.started_unix_s,
            seq=self.seq,
            time_unix_s=self._now_s,
            interval_s=interval_s,
            config_revision=1,
            config_error=None,
            in_flight=sum(len(instance.ends_s) for instance in self.instances),
            prefix_blocks=1000,
            prefix_bytes=130_000,
            prefix_capacity_blocks=100_000,
            rss_bytes=90_000_000,
            instances=tuple(_instance_sample(instance) for instance in self.instances),
            workloads=(_workload_sample(self.workload, workload),),
            chosen=tuple(chosen),
            last_decision=self._decision,
        )


def _instance_sample(instance: FakeInstance) -> InstanceSample:
    since, instance.since = instance.since, Totals()
    bs = len(instance.ends_s)
    return InstanceSample(
        id=instance.id,
        name=instance.name,
        state=instance.state,
        ejected=False,
        bs=bs,
        running=bs,
        waiting=0,
        own_requests=bs,
        queued_prefill_tokens=int(instance.queued_tokens),
        kv_use=min(1.0, 0.03 * bs),
        reported_running=bs,
        reported_waiting=0,
        reported_age_s=0.2,
        prefix_blocks=sum(instance.cached_tokens.values()) // BLOCK_TOKENS,
        models=instance.models,
        requests=since.requests,
        errors=0,
        prompt_tokens=since.prompt_tokens,
        predicted_hit_tokens=since.hit_tokens,
        reported_hit_tokens=since.hit_tokens,
        reported_prompt_tokens=since.prompt_tokens,
        p_token=since.p_token,
        score=since.score,
        ttft_us=since.ttft_us,
        tpot_us=since.tpot_us,
    )


def _workload_sample(name: str, totals: Totals) -> WorkloadSample:
    return WorkloadSample(
        name=name,
        policy="default@1",
        requests=totals.requests,
        errors=0,
        prompt_tokens=totals.prompt_tokens,
        output_tokens=totals.output_tokens,
        predicted_hit_tokens=totals.hit_tokens,
        reported_hit_tokens=totals.hit_tokens,
        reported_prompt_tokens=totals.prompt_tokens,
        score=totals.score,
        ttft_us=totals.ttft_us,
        tpot_us=totals.tpot_us,
        e2e_us=totals.e2e_us,
    )
