"""Watches the prefix classes of one worker: counts arrivals, puts classes on watch, and mitigates.

Owned by the fleet, which asks it before each decision (:meth:`HotspotDetector.hot_class`) and tells it after
(:meth:`HotspotDetector.note`). The rules themselves are pure: :mod:`router.core.hotspot`.
"""

from collections.abc import Iterable, Sequence

import msgspec

from router.core.decision import Decision
from router.core.hotspot.prefix_class import HASH_BYTES, class_depth, class_key, holders, short_name, taking_requests
from router.core.hotspot.space_saving import ClassCount
from router.core.hotspot.stage_one import Watch, is_hot, next_watch
from router.core.hotspot.stage_two import StageTwo, after_contest, contest, still_mitigated
from router.core.hotspot.window import ClassWindow
from router.core.instance import InstanceView
from router.core.prefix import PrefixIndex
from router.core.situation import HotClass
from router.core.terms import HotspotRule, Stage1

CHECK_EVERY_S = 1.0
"""How often stage 1 is evaluated here."""
LEAST_REQUESTS = 30
"""Requests of a class in the window below which its share is chance: a few sessions alone in a fleet are no crowd."""
MOST_REPORTED = 5
"""Classes that are reported where nobody wants more of them."""


class WatchedClass(msgspec.Struct):
    """A class on watch: by this worker's own stage 1 (``watch``), by the control plane (``listed``), or both."""

    watch: Watch | None = None
    listed: bool = False
    state: StageTwo = StageTwo()


class ClassReport(msgspec.Struct, frozen=True):
    """What is known of one class at one moment."""

    key: bytes
    count: ClassCount
    holders: Sequence[InstanceView]
    watched: WatchedClass | None


class HotspotDetector:
    """Classes of ``depth`` blocks in a sliding window of ``window_s`` seconds."""

    def __init__(self, index: PrefixIndex, window_s: float, depth: int) -> None:
        self.most_reported = MOST_REPORTED
        self.window = ClassWindow(window_s)
        self.watched: dict[bytes, WatchedClass] = {}
        self.mitigations = 0
        """How often a mitigation began."""
        self.mitigated_requests = 0
        """How many requests were kept away from the holders of their class."""
        self._index = index
        self._depth = depth
        self._key_end = HASH_BYTES * depth
        self._check_s = 0.0

    def hot_class(self, chain: bytes, matched: Sequence[int], rule: HotspotRule, now_s: float) -> HotClass | None:
        """Return the class of a prompt with its holders, when it is mitigated."""
        if not self.watched:
            return None
        depth = class_depth(matched, self._depth)
        key = class_key(chain, depth)
        watched = self.watched.get(key)
        if not depth or watched is None or not still_mitigated(watched.state, rule, now_s):
            return None
        return HotClass(short_name(key), frozenset(slot for slot, blocks in enumerate(matched) if blocks >= depth))

    def note(self, chain: bytes, matched: Sequence[int], decision: Decision, hot: HotClass | None) -> None:
        """Count an arrival, and let a watched class move on by how it was decided."""
        window = self.window
        window.now_arrivals += 1
        place = decision.chosen_index
        held = 0 if place is None else matched[decision.candidates[place].view.slot]
        if held >= self._depth:
            end = self._key_end
            key = chain[end - HASH_BYTES : end]
            count = window.counts.get(key)
            if count is None:
                count = window.open(chain[:end], decision.request.model)
            count.requests += 1
            count.hits += 1
        else:
            self._note_shallow(chain, matched, decision, held, hot)

    def _note_shallow(
        self, chain: bytes, matched: Sequence[int], decision: Decision, held: int, hot: HotClass | None
    ) -> None:
        """Count an arrival of which the chosen instance holds ``held`` blocks, less than a whole class prefix."""
        deepest = max(matched, default=0)
        if not deepest:
            return
        depth = self._depth if deepest >= self._depth else deepest
        end = HASH_BYTES * depth
        count = self.window.counts.get(chain[end - HASH_BYTES : end])
        if count is None:
            count = self.window.open(chain[:end], decision.request.model)
        count.requests += 1
        if held >= depth:
            count.hits += 1
        elif hot is not None:
            count.mitigated += 1
            self.mitigated_requests += 1

    def contested(self, chain: bytes, matched: Sequence[int], decision: Decision, now_s: float) -> None:
        """Let stage 2 of a watched class move on by a decision in which nobody was out for it."""
        rule = decision.policy.hotspot
        depth = class_depth(matched, self._depth)
        watched = self.watched.get(class_key(chain, depth)) if depth else None
        if watched is None or rule is None or not (watched.listed or rule.stage1 is Stage1.ROUTER):
            return
        state = StageTwo() if watched.state.mitigated_since_s is not None else watched.state
        found = contest(decision.candidates, decision.scores, matched, depth)
        watched.state = after_contest(state, found, rule, now_s)
        if watched.state.mitigated_since_s is not None:
            self.mitigations += 1

    def tick(self, views: Sequence[InstanceView], now_s: float) -> None:
        """Let time pass: close buckets that have ended, and evaluate stage 1 when it is due."""
        if now_s < self._check_s:
            return
        self._check_s = now_s + CHECK_EVERY_S
        window = self.window
        if now_s >= window.ends_s:
            window.turn(now_s)
        ready = sum(map(taking_requests, views))
        due = self._suspects(ready) if window.covered_s(now_s) >= window.window_s else []
        for key in {*due, *self.watched}:
            self._check(key, views, ready, now_s)

    def list_classes(self, keys: Iterable[bytes]) -> None:
        """Take over the classes that the control plane watches."""
        listed = frozenset(keys)
        for key in [key for key in listed if key not in self.watched]:
            self.watched[key] = WatchedClass()
        for key, watched in list(self.watched.items()):
            watched.listed = key in listed
            self._drop_unwatched(key, watched)

    def reports(self, views: Sequence[InstanceView]) -> list[ClassReport]:
        """Return the classes with the most requests in the window, and every watched one."""
        classes = self.window.classes()
        by_requests = sorted(classes, key=lambda key: classes[key].requests, reverse=True)
        wanted = dict.fromkeys([*by_requests[: self.most_reported], *self.watched])
        return [
            ClassReport(key, count, self._holders(count, views), self.watched.get(key))
            for key in wanted
            if (count := classes.get(key)) is not None
        ]

    def hot(self, views: Sequence[InstanceView]) -> list[tuple[bytes, frozenset[int]]]:
        """Return key and holders (slots) of every watched class for which the rule of stage 1 holds at this moment."""
        ready, found = sum(map(taking_requests, views)), []
        for key in self.watched:
            count = self.window.count(key)
            held = [] if count is None else self._holders(count, views)
            if count is not None and is_hot(count.requests, self.window.arrivals, len(held), ready):
                found.append((key, frozenset(view.slot for view in held)))
        return found

    def _suspects(self, ready: int) -> list[bytes]:
        """Return the classes with enough requests that would be hot if a single instance held them."""
        window, least = self.window, max(LEAST_REQUESTS - 1, self.window.arrivals / max(1, ready))
        return [key for key in window.counts if window.requests(key) > least]

    def _check(self, key: bytes, views: Sequence[InstanceView], ready: int, now_s: float) -> None:
        count = self.window.count(key)
        hot = count is not None and is_hot(
            count.requests, self.window.arrivals, len(self._holders(count, views)), ready
        )
        watched = self.watched.get(key)
        if watched is None:
            if hot:
                self.watched[key] = WatchedClass(next_watch(None, hot, now_s, self.window.window_s))
            return
        watched.watch = next_watch(watched.watch, hot, now_s, self.window.window_s)
        self._drop_unwatched(key, watched)

    def _drop_unwatched(self, key: bytes, watched: WatchedClass) -> None:
        if watched.watch is None and not watched.listed:
            del self.watched[key]

    def _holders(self, count: ClassCount, views: Sequence[InstanceView]) -> list[InstanceView]:
        return holders(views, self._index.match(count.prefix), len(count.prefix) // HASH_BYTES)
