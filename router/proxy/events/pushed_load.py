"""Load that engines push (SGLang): exact running, waiting and queued prefill, a few milliseconds old.

Ranks of one engine are added up. What comes faster than :data:`SETTLE_S` is taken in once. While pushes come, a poll
adds only what they do not say; when they stop, polls count again.
"""

import msgspec
import structlog
from msgspec.structs import replace

from router.kvevents.load_push import LoadStat, prefill_rate
from router.kvevents.load_reader import LoadReader
from router.kvevents.source import LoadSource
from router.proxy.link import Link
from router.proxy.plane import Plane
from router.state.report import EngineReport

_log = structlog.get_logger(__name__)

SETTLE_S = 0.02
FRESH_S = 0.5
"""How long the newest push counts for more than a poll: a poll that comes later is the newer word."""
_RATE_WEIGHT = 0.1


class _Pushed(msgspec.Struct):
    """What one instance pushed; ``own_requests`` were booked when the last push came."""

    link: Link
    sources: tuple[LoadSource, ...]
    ranks: dict[int, LoadStat]
    received_s: float = 0.0
    own_requests: int = 0
    pending: bool = False
    prefill_rate: float | None = None


class PushedLoad:
    """Subscribes to pushed load and reports it to the fleet. :meth:`close` at the end."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._by_id: dict[str, _Pushed] = {}
        self._reader: LoadReader | None = None

    def follow(self, link: Link, sources: tuple[LoadSource, ...]) -> None:
        """Listen to these sources of an instance and to no others."""
        instance_id = link.instance.config.id
        known = self._by_id.get(instance_id)
        if known is not None and known.link is link and known.sources == sources:
            return
        self.forget(instance_id)
        if not sources:
            return
        if self._reader is None:
            self._reader = LoadReader(self)
        self._by_id[instance_id] = _Pushed(link, sources, {})
        for source in sources:
            try:
                self._reader.add(instance_id, source)
            except OSError as error:
                _log.warning("load_push_unreachable", instance=link.instance.config.name, reason=str(error))

    def forget(self, instance_id: str) -> None:
        """Listen to an instance no longer; unknown ones are ignored."""
        known = self._by_id.pop(instance_id, None)
        if known is not None and self._reader is not None:
            for source in known.sources:
                self._reader.remove(instance_id, source.rank)

    def load_reported(self, instance: str, rank: int, stat: LoadStat) -> None:
        """Take in the newest load of one rank."""
        known = self._by_id.get(instance)
        if known is None:
            return
        before = known.ranks.get(rank)
        known.ranks[rank] = stat
        if before is not None and (rate := prefill_rate(before, stat)) is not None:
            old = known.prefill_rate
            known.prefill_rate = rate if old is None else old + (rate - old) * _RATE_WEIGHT
            tokens = (stat.prefill_uncached_total or 0) - (before.prefill_uncached_total or 0)
            known.link.pace.measured(tokens, tokens / rate)
        if not known.pending and len(known.ranks) == len(known.sources):
            known.pending = True
            self._plane.loop.call_later(SETTLE_S, self._take, instance, known)

    def complete(self, link: Link, polled: EngineReport, own_requests: int) -> tuple[EngineReport, int]:
        """Return a poll's report, with what was pushed just before in place of what it says about the same.

        :param own_requests: the most that were booked while the poll was under way; returned for what is reported.
        """
        known = self._by_id.get(link.instance.config.id)
        if known is None or not known.received_s or self._plane.loop.time() - known.received_s > FRESH_S:
            return polled, own_requests
        pushed = _report(known.ranks)
        report = replace(
            polled,
            running=pushed.running,
            waiting=pushed.waiting,
            kv_use=polled.kv_use if pushed.kv_use is None else pushed.kv_use,
            queued_prefill_tokens=pushed.queued_prefill_tokens,
        )
        return report, max(own_requests, known.own_requests)

    def age_s(self, link: Link) -> float | None:
        """Return how old the newest push of an instance is; None when there was none."""
        known = self._by_id.get(link.instance.config.id)
        return None if known is None or not known.received_s else self._plane.loop.time() - known.received_s

    def prefill_rate(self, link: Link) -> float | None:
        """Return the tokens an instance prefills in a second of prefilling, as measured there; None when unknown."""
        known = self._by_id.get(link.instance.config.id)
        return None if known is None else known.prefill_rate

    async def close(self) -> None:
        """Listen to nobody any more."""
        self._by_id.clear()
        if self._reader is not None:
            await self._reader.close()

    def _take(self, instance_id: str, pushed: _Pushed) -> None:
        pushed.pending = False
        if self._by_id.get(instance_id) is not pushed:
            return
        instance, now_s = pushed.link.instance, self._plane.loop.time()
        own_requests = max(pushed.own_requests, instance.own_requests)
        pushed.received_s, pushed.own_requests = now_s, instance.own_requests
        known = None if instance.reconciled is None else instance.reconciled.report
        report = _report(pushed.ranks)
        if known is not None:
            report = replace(report, kv_block_tokens=known.kv_block_tokens, kv_capacity_tokens=known.kv_capacity_tokens)
        self._plane.fleet.report(instance, report, now_s, own_requests)


def _report(ranks: dict[int, LoadStat]) -> EngineReport:
    """Add the ranks up; the fullest KV cache counts, and Q only where every rank tells it."""
    stats = ranks.values()
    queued = [stat.waiting_uncached_tokens for stat in stats if stat.waiting_uncached_tokens is not None]
    uses = [stat.kv_use for stat in stats if stat.kv_use is not None]
    return EngineReport(
        running=sum(stat.running for stat in stats),
        waiting=sum(stat.waiting for stat in stats),
        kv_use=max(uses, default=None),
        queued_prefill_tokens=sum(queued) if len(queued) == len(ranks) else None,
    )
