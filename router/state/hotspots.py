"""The hotspot detectors of a fleet: one for each way in which the policies in force define classes and windows.

Every detector sees every request, so that shares are of all arrivals. Usually there is one.
"""

from collections.abc import Iterable, Sequence

from router.core.decision import Decision
from router.core.hotspot.prefix_class import HASH_BYTES, class_id, taking_requests
from router.core.instance import InstanceView
from router.core.prefix import PrefixIndex
from router.core.situation import HotClass
from router.core.terms import HotspotRule
from router.snapshot import HotClassSample
from router.state.hotspot_detector import MOST_REPORTED, ClassReport, HotspotDetector

DEFAULT_RULE = HotspotRule()
"""What classes are tracked by while no policy has a rule."""

_Key = tuple[int, float]


class Hotspots:
    """Owner of the detectors. ``tokens_per_block`` says how deep the tokens of a class reach."""

    def __init__(self, index: PrefixIndex, tokens_per_block: float) -> None:
        self._index = index
        self._tokens_per_block = tokens_per_block
        self._listed: tuple[bytes, ...] = ()
        self._by_key: dict[_Key, HotspotDetector] = {}
        self._all: list[HotspotDetector] = []
        self.watching = False
        """Whether any class is on watch."""
        self.configure(())

    def configure(
        self, rules: Iterable[HotspotRule], listed: Iterable[str] = (), reported: int = MOST_REPORTED
    ) -> None:
        """Follow the rules in force, and the ids of classes that the control plane watches; counts are kept.

        :param reported: how many of the most frequent classes are reported, beside those on watch.
        """
        self._reported = reported
        self._listed = tuple(map(bytes.fromhex, listed))
        keys = dict.fromkeys(map(_key, rules)) or {_key(DEFAULT_RULE): None}
        known, self._by_key = self._by_key, {}
        for key in keys:
            self._by_key[key] = known.get(key) or self._detector(key)
        self._take_over()

    def reset(self) -> None:
        """Forget every class: their keys do not mean anything any more."""
        self._by_key = {key: self._detector(key) for key in self._by_key}
        self._take_over()

    def hot_class(
        self, chain: bytes, matched: Sequence[int], rule: HotspotRule | None, now_s: float
    ) -> HotClass | None:
        """Return the class of a prompt with its holders, when it is mitigated under the rule."""
        detector = None if rule is None else self._by_key.get(_key(rule))
        if rule is None or detector is None:
            return None
        return detector.hot_class(chain, matched, rule, now_s)

    def tick(self, views: Sequence[InstanceView], now_s: float) -> None:
        """Let time pass."""
        for detector in self._all:
            detector.tick(views, now_s)
        self.watching = any(detector.watched for detector in self._all)

    def note(
        self, chain: bytes, matched: Sequence[int], decision: Decision, hot: HotClass | None, now_s: float
    ) -> None:
        """Take in the decision about a request that arrived just now; retries are not arrivals."""
        for detector in self._all:
            detector.note(chain, matched, decision, hot)
        if self.watching and hot is None:
            for detector in self._all:
                detector.contested(chain, matched, decision, now_s)

    def leading(self, views: Sequence[InstanceView]) -> list[tuple[bytes, int]]:
        """Return key and depth (in blocks) of every class that is reported, the most frequent first."""
        reports = self._all[0].reports(views)
        return [(report.key, len(report.count.prefix) // HASH_BYTES) for report in reports]

    def covered_s(self, now_s: float) -> float:
        """Return how much the sliding window that is reported covers by now: all of it after its first minute."""
        return self._all[0].window.covered_s(now_s)

    def covers_all(self, now_s: float) -> bool:
        """Say whether that window covers its whole length by now."""
        window = self._all[0].window
        return window.covered_s(now_s) >= window.window_s

    def hot(self, views: Sequence[InstanceView]) -> list[tuple[bytes, frozenset[int]]]:
        """Return key and holders (slots) of every watched class of that window that is hot at this moment."""
        return self._all[0].hot(views)

    @property
    def arrivals(self) -> int:
        """Requests in that window."""
        return self._all[0].window.arrivals

    @property
    def mitigations(self) -> int:
        """How often a mitigation began, since the detectors in force were made."""
        return sum(detector.mitigations for detector in self._all)

    @property
    def mitigated_requests(self) -> int:
        """How many requests were kept away from the holders of their class."""
        return sum(detector.mitigated_requests for detector in self._all)

    def samples(self, views: Sequence[InstanceView], ids: Sequence[str]) -> tuple[HotClassSample, ...]:
        """Return the classes of that window as they are reported; ``ids`` are those of the views' instances."""
        id_of = {view.slot: instance_id for view, instance_id in zip(views, ids, strict=True)}
        ready = sum(map(taking_requests, views))
        window_s = self._all[0].window.window_s
        detectors = [detector for detector in self._all if detector.window.window_s == window_s]
        return tuple(self._sample(report, id_of, ready) for detector in detectors for report in detector.reports(views))

    def _take_over(self) -> None:
        self._all = list(self._by_key.values())
        for detector in self._all:
            detector.most_reported = self._reported
            detector.list_classes(self._listed)
        self.watching = any(detector.watched for detector in self._all)

    def _detector(self, key: _Key) -> HotspotDetector:
        class_tokens, window_s = key
        return HotspotDetector(self._index, window_s, max(1, int(class_tokens / self._tokens_per_block)))

    def _sample(self, report: ClassReport, id_of: dict[int, str], ready: int) -> HotClassSample:
        count, watched = report.count, report.watched
        return HotClassSample(
            id=class_id(report.key),
            model=count.model,
            prefix_tokens=int(len(count.prefix) // HASH_BYTES * self._tokens_per_block),
            requests=count.requests,
            error=count.error,
            hits=count.hits,
            share=count.requests / max(1, self.arrivals),
            holders=tuple(id_of[view.slot] for view in report.holders),
            ready=ready,
            consecutive=0 if watched is None else watched.state.consecutive,
            watched=watched is not None,
            mitigated=watched is not None and watched.state.mitigated_since_s is not None,
            mitigated_requests=count.mitigated,
        )


def _key(rule: HotspotRule) -> _Key:
    return rule.class_tokens, rule.window_s
