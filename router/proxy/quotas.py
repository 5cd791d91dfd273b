"""What tenants may use: tokens and requests a minute as token buckets, and requests at one time as a count.

Life-cycle of a reservation, as a table::

    event                  tokens                          requests    concurrent
    reserve                the estimate is taken           1 is taken  1 is taken
    settle(used)           the estimate becomes what was used          1 is given back
    settle(0)              all are given back                          1 is given back

Workers share a tenant's limits. Each tells the control plane, with its snapshots, what it has let in, and hears what
the others have (:mod:`router.proxy.bucket`). One that hears nothing any more keeps to an equal part.
"""

from collections.abc import Iterable

import msgspec

from router.config import TenantConfig
from router.proxy.bucket import Bucket
from router.proxy.errors import TooManyRequests
from router.snapshot import QuotaUse, SnapshotAnswer

HEARD_FOR_S = 3.0
"""How long what was heard of other workers is good for."""


class Reservation:
    """What one request holds of its tenant's quota, until it is settled."""

    __slots__ = ("_quota", "_settled", "tokens")

    def __init__(self, quota: "TenantQuota", tokens: int) -> None:
        self._quota = quota
        self._settled = False
        self.tokens = tokens

    def settle(self, used_tokens: int, now_s: float) -> None:
        """The request has ended after using so many tokens; a second call does nothing."""
        if not self._settled:
            self._settled = True
            self._quota.settle(self.tokens, used_tokens, now_s)

    def lines(self, now_s: float) -> bytes:
        """Return the header lines that tell what is left."""
        return self._quota.lines(now_s)


class TenantQuota:
    """The quota of one tenant in this worker."""

    def __init__(self, config: TenantConfig, now_s: float) -> None:
        self._config = config
        self._tokens = _bucket(None, config.tokens_per_minute, now_s)
        self._requests = _bucket(None, config.requests_per_minute, now_s)
        self.concurrent = 0
        self.concurrent_elsewhere = 0
        self._let_in_tokens = 0
        self._let_in_requests = 0

    def use(self) -> QuotaUse:
        """Return what was let in here since the worker began."""
        return QuotaUse(
            tenant=self._config.name,
            tokens=self._let_in_tokens,
            requests=self._let_in_requests,
            concurrent=self.concurrent,
        )

    def take_elsewhere(self, tokens: int, requests: int, now_s: float) -> None:
        """Take out what another worker let in (or, negative tokens, has settled for less)."""
        if self._tokens is not None:
            self._tokens.take_elsewhere(tokens, now_s)
        if self._requests is not None:
            self._requests.take_elsewhere(requests, now_s)

    def shared(self, sharers: int, now_s: float) -> None:
        """All news of the others are taken in: there are so many workers."""
        for bucket in (self._tokens, self._requests):
            if bucket is not None:
                bucket.shared(sharers, now_s)

    def part(self, now_s: float) -> None:
        """Nothing is heard of the others any more."""
        for bucket in (self._tokens, self._requests):
            if bucket is not None:
                bucket.part(now_s)

    def configure(self, config: TenantConfig, now_s: float) -> None:
        """Take over other limits; what was used stays used."""
        self._config = config
        self._tokens = _bucket(self._tokens, config.tokens_per_minute, now_s)
        self._requests = _bucket(self._requests, config.requests_per_minute, now_s)

    def reserve(self, tokens: int, now_s: float) -> Reservation:
        """Take a request's share.

        A request larger than the whole minute's tokens is let in when the bucket is full, else it never could be.

        :raises TooManyRequests: naming the limit that is reached, and when to come back.
        """
        limit = self._config.concurrent
        if limit is not None and self.concurrent + self.concurrent_elsewhere >= limit:
            raise self._refusal(f"{limit} requests at one time", 1.0, now_s)
        if self._requests is not None and (wait_s := self._requests.wait_s(1, now_s)) > 0:
            raise self._refusal(f"{self._requests.limit} requests per minute", wait_s, now_s)
        if self._tokens is not None and (wait_s := self._tokens.wait_s(tokens, now_s)) > 0:
            raise self._refusal(f"{self._tokens.limit} tokens per minute", wait_s, now_s)
        self.concurrent += 1
        self._let_in_tokens += tokens
        self._let_in_requests += 1
        if self._requests is not None:
            self._requests.take(1, now_s)
        if self._tokens is not None:
            self._tokens.take(tokens, now_s)
        return Reservation(self, tokens)

    def settle(self, reserved_tokens: int, used_tokens: int, now_s: float) -> None:
        """Replace what a request had reserved by what it used."""
        self.concurrent -= 1
        self._let_in_tokens += used_tokens - reserved_tokens
        if self._tokens is not None:
            self._tokens.take(used_tokens - reserved_tokens, now_s)

    def lines(self, now_s: float) -> bytes:
        """Return the header lines that tell limits and what is left of them, as OpenAI names them."""
        return b"".join(
            b"x-ratelimit-limit-%b: %d\r\nx-ratelimit-remaining-%b: %d\r\nx-ratelimit-reset-%b: %.3fs\r\n"
            % (name, bucket.limit, name, max(0, int(bucket.level(now_s))), name, bucket.wait_s(bucket.limit, now_s))
            for name, bucket in ((b"requests", self._requests), (b"tokens", self._tokens))
            if bucket is not None
        )

    def _refusal(self, what: str, wait_s: float, now_s: float) -> TooManyRequests:
        return TooManyRequests(
            f"tenant {self._config.name} has reached its limit of {what}",
            retry_after_s=max(1, -int(-wait_s // 1)),
            lines=self.lines(now_s),
        )


class Quotas:
    """The quotas of all tenants; they outlive configurations."""

    def __init__(self) -> None:
        self._by_tenant: dict[str, TenantQuota] = {}
        self._heard_s = -HEARD_FOR_S - 1
        self._known: dict[str, dict[str, QuotaUse]] = {}
        """By worker and tenant: what was heard last."""

    def configure(self, tenants: Iterable[TenantConfig], now_s: float) -> None:
        """Take over a configuration."""
        known, self._by_tenant = self._by_tenant, {}
        for config in tenants:
            quota = known.get(config.name)
            if quota is None:
                quota = TenantQuota(config, now_s)
            else:
                quota.configure(config, now_s)
            self._by_tenant[config.name] = quota

    def uses(self) -> tuple[QuotaUse, ...]:
        """Return what this worker has let in, of every tenant."""
        return tuple(quota.use() for quota in self._by_tenant.values())

    def hear(self, answer: SnapshotAnswer, now_s: float) -> None:
        """Take in what the other workers have let in.

        After a silence nothing is taken out: meanwhile everybody has kept to its part. Of a worker that is new,
        everything is, if it began while this one was there to hear of it.
        """
        was_heard, self._heard_s = now_s <= self._heard_s + HEARD_FOR_S, now_s
        known, self._known = self._known, {}
        for quota in self._by_tenant.values():
            quota.concurrent_elsewhere = 0
        for other in answer.others:
            uses = self._known[other.worker] = {use.tenant: use for use in other.quotas}
            before = known.get(other.worker)
            self._hear_of(uses, before or {}, was_heard and (before is not None or other.is_younger), now_s)
        for quota in self._by_tenant.values():
            quota.shared(1 + len(answer.others), now_s)

    def _hear_of(self, uses: dict[str, QuotaUse], before: dict[str, QuotaUse], counts: bool, now_s: float) -> None:
        for tenant, use in uses.items():
            quota = self._by_tenant.get(tenant)
            if quota is None:
                continue
            quota.concurrent_elsewhere += use.concurrent
            if counts:
                last = before.get(tenant)
                tokens, requests = (0, 0) if last is None else (last.tokens, last.requests)
                quota.take_elsewhere(use.tokens - tokens, use.requests - requests, now_s)

    def of(self, tenant: str) -> TenantQuota:
        """Return a configured tenant's quota.

        :raises KeyError: for a tenant that is not configured.
        """
        return self._by_tenant[tenant]

    def tick(self, now_s: float) -> None:
        """Let time pass: keep to this worker's part when nothing was heard of the others for too long."""
        if self._known and now_s > self._heard_s + HEARD_FOR_S:
            for quota in self._by_tenant.values():
                quota.part(now_s)


class OutputEstimate(msgspec.Struct):
    """How many tokens a request will write where it does not say: the mean of those that have ended."""

    mean: float = 256.0

    def learn(self, output_tokens: int) -> None:
        """Take in one answer's output."""
        self.mean += (output_tokens - self.mean) * 0.02


def _bucket(known: Bucket | None, limit: int | None, now_s: float) -> Bucket | None:
    if limit is None:
        return None
    if known is None:
        return Bucket(limit, now_s)
    return known if known.limit == limit else known.resized(limit, now_s)
