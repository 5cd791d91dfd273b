"""One instance's mutable counters, and the immutable view that decisions read.

The view is replaced whole whenever a counter moves; nobody but the owning fleet writes here.
"""

from msgspec.structs import replace

from router.config import InstanceConfig
from router.core.errors import CounterFault
from router.core.hardware import HardwareProfile
from router.core.instance import InstanceView
from router.state.report import EngineReport, Reconciled, reconcile
from router.state.window import WindowedSum

COST_WINDOW_S = 180.0
"""Window of ``windowed_prefill_tokens``."""


class Instance:
    """Counters of one instance: requests booked and waiting, queued prefill, KV expected in use, last report."""

    __slots__ = (
        "_window",
        "active_kv_tokens",
        "cold_since_s",
        "config",
        "ejected",
        "last_chosen",
        "learnt_models",
        "observed",
        "own_queued_prefill_tokens",
        "own_requests",
        "own_waiting",
        "position",
        "reconciled",
        "slot",
        "view",
    )

    def __init__(self, slot: int, config: InstanceConfig) -> None:
        self.slot = slot
        self.config = config
        self.position: int | None = None
        """Index among the fleet's views; None once removed."""
        self.own_requests = 0
        self.own_waiting = 0
        self.own_queued_prefill_tokens = 0
        self.active_kv_tokens = 0
        self.last_chosen = 0
        self.ejected = False
        self.cold_since_s: float | None = None
        """When it joined or lost its cache; None when it is warm."""
        self.reconciled: Reconciled | None = None
        self.learnt_models: frozenset[str] = frozenset()
        """What the engine says that it serves; adapters that were loaded meanwhile are among them."""
        self.observed: HardwareProfile | None = None
        """What its steps cost by what it did; None until enough was seen."""
        self._window = WindowedSum(COST_WINDOW_S)
        self.view = self._fresh_view()

    def configure(self, config: InstanceConfig) -> None:
        """Take over a new configuration; counters of requests in flight stay."""
        self.config = config
        self.view = self._fresh_view()

    def move(self, *, requests: int = 0, waiting: int = 0, queued_prefill_tokens: int = 0, kv_tokens: int = 0) -> None:
        """Add (or, negative, take away) what one booking holds.

        :raises CounterFault: when a counter would become negative; nothing is changed then.
        """
        own_requests = self.own_requests + requests
        own_waiting = self.own_waiting + waiting
        queued = self.own_queued_prefill_tokens + queued_prefill_tokens
        kv = self.active_kv_tokens + kv_tokens
        if own_requests < 0 or own_waiting < 0 or queued < 0 or kv < 0:
            raise CounterFault(
                f"instance {self.config.name}: requests {own_requests}, waiting {own_waiting}, "
                f"queued prefill {queued}, KV tokens {kv}"
            )
        self.own_requests = own_requests
        self.own_waiting = own_waiting
        self.own_queued_prefill_tokens = queued
        self.active_kv_tokens = kv
        self._refresh()

    def chosen(self, decision_number: int, new_tokens: int, now_s: float) -> None:
        """Note that a decision chose this instance."""
        self.last_chosen = decision_number
        self._window.add(new_tokens, now_s)

    def reported(self, report: EngineReport, now_s: float, own_requests: int) -> None:
        """Take in an engine's report; ``own_requests`` as in :func:`router.state.report.reconcile`."""
        self.reconciled = reconcile(report, now_s, own_requests, self.own_queued_prefill_tokens)
        self._window.expire(now_s)
        self._refresh()

    def forget_reports(self) -> None:
        """Drop what the engine said: it restarted, or another engine took its place."""
        self.reconciled = None
        self._refresh()

    def set_ejected(self, ejected: bool) -> None:
        """Take the instance out of rotation, or back."""
        self.ejected = ejected
        self._refresh()

    def start_cold(self, now_s: float) -> None:
        """Begin a cold start: the instance joined, or lost its cache."""
        self.cold_since_s = now_s
        self.view = replace(self.view, cold_since_s=now_s, warmth=0.0)

    def warm_up(self, warmth: float) -> None:
        """Note how warm it is (0..1); at 1 the cold start is over."""
        if warmth >= 1:
            self.cold_since_s = None
        self.view = replace(self.view, cold_since_s=self.cold_since_s, warmth=warmth)

    def observe(self, hardware: HardwareProfile | None) -> None:
        """Note what its steps cost by what it did; None forgets it."""
        self.observed = hardware
        self.view = replace(self.view, observed=hardware)

    def _refresh(self) -> None:
        known = self.reconciled
        external = 0 if known is None else known.external_requests
        bs = self.own_requests + external
        waiting = self.own_waiting if known is None else min(bs, max(self.own_waiting, known.report.waiting or 0))
        self.view = replace(
            self.view,
            bs=bs,
            running=bs - waiting,
            waiting=waiting,
            own_requests=self.own_requests,
            queued_prefill_tokens=self.own_queued_prefill_tokens
            + (0 if known is None else known.external_prefill_tokens),
            active_kv_tokens=self.active_kv_tokens,
            kv_use=None if known is None else known.report.kv_use,
            last_chosen=self.last_chosen,
            windowed_prefill_tokens=self._window.total,
            ejected=self.ejected,
        )

    def learn_models(self, names: frozenset[str]) -> None:
        """Take in what the engine says that it serves."""
        self.learnt_models = names
        self.view = replace(self.view, models=self._models())

    def _models(self) -> frozenset[str]:
        """Names it answers to: the configured ones and the engine's own; with none configured it answers to any."""
        return self.learnt_models.union(self.config.models) if self.config.models else frozenset()

    def _fresh_view(self) -> InstanceView:
        config = self.config
        self.view = InstanceView(
            slot=self.slot,
            name=config.name,
            state=config.state,
            models=self._models(),
            kv_block_tokens=config.kv_block_tokens,
            kv_capacity_tokens=config.kv_capacity_tokens,
            hardware=config.hardware,
            observed=self.observed,
            spot=config.spot,
            cold_since_s=self.cold_since_s,
        )
        self._refresh()
        return self.view
