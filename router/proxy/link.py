"""One instance as the data plane reaches it: its connections, its breaker, and the exchanges that are on it."""

from typing import TYPE_CHECKING, Protocol

from router.proxy.breaker import Breaker
from router.proxy.drift import Drift
from router.proxy.failure import FailureKind
from router.proxy.fetch import Fetched, FetchFailed, FetchRequest, fetch
from router.proxy.inquest import ANSWER_S, Inquest
from router.proxy.pool import Pool
from router.proxy.suspects import Death
from router.state.instance import Instance
from router.state.pace.pace_meter import PaceMeter

if TYPE_CHECKING:
    from router.proxy.events.answer_copy import CopyBudget


_GONE = frozenset({FailureKind.CONNECT, FailureKind.RESET})


class OnLink(Protocol):
    """An exchange, as far as a link knows it."""

    def on_instance_removed(self) -> None:
        """The instance is gone: what has not begun to be answered must go elsewhere."""
        ...


class Link:
    """Lives as long as an instance keeps its address; exchanges that began on it end on it."""

    __slots__ = (
        "_last_death",
        "authorization",
        "breaker",
        "copies",
        "deaths",
        "drift",
        "exchanges",
        "inquest",
        "instance",
        "missing",
        "pace",
        "pool",
    )

    def __init__(self, instance: Instance, pool: Pool, breaker: Breaker) -> None:
        self.instance = instance
        self.pool = pool
        self.breaker = breaker
        self.exchanges: set[OnLink] = set()
        self.drift = Drift()
        self.pace = PaceMeter(instance)
        self.missing: tuple[str, ...] | None = None
        """What the engine's last metrics lacked; None until there were any."""
        self.authorization: bytes | None = None
        """Secret: sent to the engine in place of the client's own."""
        self.copies: CopyBudget | None = None
        """Where copies of its answers are counted; None while nothing is to be learnt from them."""
        self.inquest = Inquest(self._is_gone)
        self._last_death: Death | None = None
        self.deaths = 0
        """Times that it was found dead after it had lost requests."""
        self.configured()

    async def ask(self, path: bytes, *, body: bytes = b"", limit_s: float) -> Fetched:
        """Ask the engine something of our own; with a body (JSON) it is a POST.

        :raises FetchFailed: when there is no answer in time.
        """
        fields: dict[bytes, bytes] = {} if self.authorization is None else {b"Authorization": self.authorization}
        if body:
            fields[b"Content-Type"] = b"application/json"
        method = b"POST" if body else b"GET"
        return await fetch(self.pool, FetchRequest(method=method, path=path, fields=fields, body=body, limit_s=limit_s))

    def configured(self) -> None:
        """Take over what may change while the address stays."""
        secret = self.instance.config.authorization
        self.authorization = None if secret is None else secret.encode()

    def died(self, attempt: object, now_s: float) -> Death:
        """The engine was found dead after an attempt: it leaves the rotation at once."""
        breaker, config = self.breaker, self.instance.config
        breaker.failed(attempt, now_s, certain=True)
        death = Death(config.name, config.id, breaker.openings)
        if death != self._last_death:  # else many requests tell of one death
            self._last_death = death
            self.deaths += 1
        return death

    async def _is_gone(self) -> bool:
        """Ask the engine whether it lives. 503 is vLLM's server without its engine, or SGLang's that has just begun."""
        try:
            answer = await self.ask(b"/health", limit_s=ANSWER_S)
        except FetchFailed as error:
            return error.kind in _GONE
        return answer.status == 503

    def close(self) -> None:
        """Close what is idle, and send elsewhere what has not begun."""
        self.pool.close()
        self.inquest.close()
        for exchange in list(self.exchanges):
            exchange.on_instance_removed()
