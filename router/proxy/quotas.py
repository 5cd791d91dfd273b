"""What tenants may use: tokens and requests a minute as token buckets, and requests at one time as a count.

Life-cycle of a reservation, as a table::

    event                  tokens                          requests    concurrent
    reserve                the estimate is taken           1 is taken  1 is taken
    settle(used)           the estimate becomes what was used          1 is given back
    settle(0)              all are given back                          1 is given back

Workers share a tenant's limits. Each tells the control plane, with its snapshots, what it has let in, and hears what
the others have and what they may still let in (:mod:`router.proxy.bucket`). One that hears nothing any more keeps to
what it may.
"""

from collections.abc import Iterable, Sequence

import msgspec

from router.config import TenantConfig
from router.proxy.bucket import HEARD_FOR_S, Bucket, Elsewhere
from router.proxy.errors import TooManyRequests
from router.snapshot import OtherWorker, QuotaUse, SnapshotAnswer


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

    def __init__(self, config: TenantConfig, sharers: int, now_s: float) -> None:
        self._sharers = sharers
        self._tokens: Bucket | None = None
        self._requests: Bucket | None = None
        self.configure(config, now_s)
        self.concurrent = 0
        self.concurrent_elsewhere = 0
        self._let_in_tokens = 0
        self._let_in_requests = 0

    def use(self, now_s: float) -> QuotaUse:
        """Return what was let in here since the worker began, and what may be."""
        return QuotaUse(
            tenant=self._config.name,
            tokens=self._let_in_tokens,
            requests=self._let_in_requests,
            concurrent=self.concurrent,
            tokens_left=None if self._tokens is None else self._tokens.part(now_s),
            requests_left=None if self._requests is None else self._requests.part(now_s),
        )

    def hear(self, news: Sequence["_News"], sharers: int, now_s: float) -> None:
        """Take in what was heard of other workers; they and this one are so many."""
        self._sharers = sharers
        self.concurrent_elsewhere = sum(one.use.concurrent for one in news)
        if self._tokens is not None:
            self._tokens.hear([one.of_tokens() for one in news], sharers, now_s)
        if self._requests is not None:
            self._requests.hear([one.of_requests() for one in news], sharers, now_s)

    def configure(self, config: TenantConfig, now_s: float) -> None:
        """Take over other limits; what was used stays used."""
        self._config = config
        self._tokens = self._bucket(self._tokens, config.tokens_per_minute, now_s)
        self._requests = self._bucket(self._requests, config.requests_per_minute, now_s)

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
            % (name, bucket.limit, name, max(0, int(bucket.remaining(now_s))), name, bucket.wait_s(bucket.limit, now_s))
            for name, bucket in ((b"requests", self._requests), (b"tokens", self._tokens))
            if bucket is not None
        )

    def _bucket(self, known: Bucket | None, limit: int | None, now_s: float) -> Bucket | None:
        if limit is None:
            return None
        if known is None:
            return Bucket(limit, now_s, self._sharers)
        return known if known.limit == limit else known.resized(limit, now_s)

    def _refusal(self, what: str, wait_s: float, now_s: float) -> TooManyRequests:
        return TooManyRequests(
            f"tenant {self._config.name} has reached its limit of {what}",
            retry_after_s=max(1, -int(-wait_s // 1)),
            lines=self.lines(now_s),
        )


class _News(msgspec.Struct, frozen=True):
    """What another worker told of a tenant; ``last`` is what it had told before, where that is known."""

    use: QuotaUse
    last: QuotaUse
    since_s: float

    def of_tokens(self) -> Elsewhere:
        return Elsewhere(self.use.tokens - self.last.tokens, self.use.tokens_left or 0.0, self.since_s)

    def of_requests(self) -> Elsewhere:
        return Elsewhere(self.use.requests - self.last.requests, self.use.requests_left or 0.0, self.since_s)


class _Other:
    """What was heard of another worker."""

    __slots__ = ("heard_s", "last", "moved_s", "seq", "since_s", "uses")

    def __init__(self, said: OtherWorker, now_s: float, *, from_its_beginning: bool) -> None:
        self.seq = said.seq
        self.uses = {use.tenant: use for use in said.quotas}
        self.last = {} if from_its_beginning else self.uses
        self.heard_s = self.moved_s = self.since_s = now_s

    def hear(self, said: OtherWorker, now_s: float) -> None:
        self.heard_s = now_s
        if said.seq != self.seq:
            self.seq, self.uses = said.seq, {use.tenant: use for use in said.quotas}
            self.since_s, self.moved_s = self.moved_s, now_s

    def news(self, tenant: str) -> _News | None:
        use = self.uses.get(tenant)
        if use is None:
            return None
        return _News(
            use, self.last.get(tenant) or QuotaUse(tenant=tenant, tokens=0, requests=0, concurrent=0), self.since_s
        )


class Quotas:
    """The quotas of all tenants; they outlive configurations."""

    def __init__(self) -> None:
        self._by_tenant: dict[str, TenantQuota] = {}
        self._has_heard = False
        self._others: dict[str, _Other] = {}

    def configure(self, tenants: Iterable[TenantConfig], now_s: float) -> None:
        """Take over a configuration."""
        known, self._by_tenant = self._by_tenant, {}
        for config in tenants:
            quota = known.get(config.name)
            if quota is None:
                quota = TenantQuota(config, 1 + len(self._others), now_s)
            else:
                quota.configure(config, now_s)
            self._by_tenant[config.name] = quota

    def uses(self, now_s: float) -> tuple[QuotaUse, ...]:
        """Return what this worker has let in, of every tenant."""
        return tuple(quota.use(now_s) for quota in self._by_tenant.values())

    def hear(self, answer: SnapshotAnswer, now_s: float) -> None:
        """Take in what the other workers have let in.

        Of a worker that is new, everything counts, if it began while this one was there to hear of it. One that is not
        told of any more is waited for a while.
        """
        for other in self._others.values():
            other.last = other.uses
        for said in answer.others:
            known = self._others.get(said.worker)
            if known is None:
                began_here = said.is_younger and self._has_heard
                self._others[said.worker] = _Other(said, now_s, from_its_beginning=began_here)
            else:
                known.hear(said, now_s)
        self._has_heard = True
        self._others = {name: one for name, one in self._others.items() if now_s <= one.heard_s + HEARD_FOR_S}
        for tenant, quota in self._by_tenant.items():
            news = [one for other in self._others.values() if (one := other.news(tenant)) is not None]
            quota.hear(news, 1 + len(self._others), now_s)

    def of(self, tenant: str) -> TenantQuota:
        """Return a configured tenant's quota.

        :raises KeyError: for a tenant that is not configured.
        """
        return self._by_tenant[tenant]


class OutputEstimate(msgspec.Struct):
    """How many tokens a request will write where it does not say: the mean of those that have ended."""

    mean: float = 256.0

    def learn(self, output_tokens: int) -> None:
        """Take in one answer's output."""
        self.mean += (output_tokens - self.mean) * 0.02
