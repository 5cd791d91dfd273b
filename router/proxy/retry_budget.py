"""A budget for retries, so that a failing fleet is not hit twice as hard."""


class RetryBudget:
    """Every request earns a share of a retry; a small reserve serves quiet times."""

    def __init__(self, share: float = 0.1, reserve: float = 10.0, most: float = 1000.0) -> None:
        self._share = share
        self._reserve = reserve
        self._most = most
        self._tokens = reserve

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

    def refill(self) -> None:
        """Restore the reserve (called once in a while)."""
        self._tokens = max(self._tokens, self._reserve)
