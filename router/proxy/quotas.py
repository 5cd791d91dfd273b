"""What tenants may use: tokens and requests a minute as token buckets, and requests at one time as a count.

Life-cycle of a reservation, as a table::

    event                  tokens                          requests    concurrent
    reserve                the estimate is taken           1 is taken  1 is taken
    settle(used)           the estimate becomes what was used          1 is given back
    settle(0)              all are given back                          1 is given back

A worker counts what passes through itself; with several workers each enforces the whole limit on its share.
"""

from collections.abc import Iterable

import msgspec

from router.config import TenantConfig
from router.proxy.errors import TooManyRequests

MINUTE_S = 60.0


class Bucket:
    """A bucket that holds ``limit`` at most, and is filled with as much in a minute. Its level may be below 0."""

    __slots__ = ("_level", "_moved_s", "limit")

    def __init__(self, limit: int, now_s: float) -> None:
        self.limit = limit
        self._level = float(limit)
        self._moved_s = now_s

    def level(self, now_s: float) -> float:
        """Return what is in it."""
        if now_s > self._moved_s:
            self._level = min(float(self.limit), self._level + (now_s - self._moved_s) * self.limit / MINUTE_S)
            self._moved_s = now_s
        return self._level

    def take(self, amount: float, now_s: float) -> None:
        """Take out (or, negative, put back)."""
        self._level = min(float(self.limit), self.level(now_s) - amount)

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long it takes until ``amount``, or all that it can hold, is in it."""
        lacking = min(amount, float(self.limit)) - self.level(now_s)
        return max(0.0, lacking * MINUTE_S / self.limit)

    def resized(self, limit: int, now_s: float) -> "Bucket":
        """Return a bucket of another size that has been drawn on as much."""
        other = Bucket(limit, now_s)
        other.take(self.limit - self.level(now_s), now_s)
        return other


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
        if limit is not None and self.concurrent >= limit:
            raise self._refusal(f"{limit} requests at one time", 1.0, now_s)
        if self._requests is not None and (wait_s := self._requests.wait_s(1, now_s)) > 0:
            raise self._refusal(f"{self._requests.limit} requests per minute", wait_s, now_s)
        if self._tokens is not None and (wait_s := self._tokens.wait_s(tokens, now_s)) > 0:
            raise self._refusal(f"{self._tokens.limit} tokens per minute", wait_s, now_s)
        self.concurrent += 1
        if self._requests is not None:
            self._requests.take(1, now_s)
        if self._tokens is not None:
            self._tokens.take(tokens, now_s)
        return Reservation(self, tokens)

    def settle(self, reserved_tokens: int, used_tokens: int, now_s: float) -> None:
        """Replace what a request had reserved by what it used."""
        self.concurrent -= 1
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


def _bucket(known: Bucket | None, limit: int | None, now_s: float) -> Bucket | None:
    if limit is None:
        return None
    if known is None:
        return Bucket(limit, now_s)
    return known if known.limit == limit else known.resized(limit, now_s)
