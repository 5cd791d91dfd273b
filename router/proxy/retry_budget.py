"""A budget for retries, so that a failing fleet is not hit twice as hard."""


class RetryBudget:
    """Every request earns a share of a retry; a reserve, refilled over time, serves an engine that dies with its work.

    The reserve is about what waits at one engine, so that the first of them to hang fails no request.
    """

    def __init__(
        self, share: float = 0.1, reserve: float = 100.0, most: float = 1000.0, refill_per_s: float = 5.0
    ) -> None:
        self._share = share
        self._reserve = reserve
        self._most = most
        self._refill_per_s = refill_per_s
        self._tokens = reserve
        self._refilled_s: float | None = None

    @property
    def retries_left(self) -> int:
        """Retries that could be made now."""
        return int(self._tokens)

    def earn(self) -> None:
        """A request came in."""
        self._tokens = min(self._most, self._tokens + self._share)

    def spend(self) -> bool:
        """Take one retry, if there is one."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def tick(self, now_s: float) -> None:
        """Let time pass: the reserve fills up again."""
        if self._refilled_s is not None and self._tokens < self._reserve:
            self._tokens = min(self._reserve, self._tokens + (now_s - self._refilled_s) * self._refill_per_s)
        self._refilled_s = now_s
