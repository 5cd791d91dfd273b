"""The text of the most frequent prefix classes: bounded, in memory, of tenants that allow it, and of nobody alone."""

from collections.abc import Iterable, Sequence

import msgspec
import orjson
from msgspec.structs import replace

from router.config import ConfigDocument, PreloadConfig
from router.core.hotspot.prefix_class import HASH_BYTES, class_id
from router.proxy.preload.common_body import COMMON
from router.snapshot import HotClassSample

SAMPLES = 4
"""Requests of a class that its text is learnt from; two make it usable."""
LEAST_SAMPLES = 2
MOST_SAMPLE_BYTES = 1024 * 1024
"""Of one request; larger ones are not learnt from."""


class ClassPrefix(msgspec.Struct, frozen=True):
    """A class: its key is the hash of the block at ``depth`` (>= 1) of a prompt's chain."""

    key: bytes
    depth: int

    def holds(self, chain: bytes) -> bool:
        """Say whether a prompt with this chain is of the class."""
        return chain[HASH_BYTES * (self.depth - 1) : HASH_BYTES * self.depth] == self.key


class ClassText(msgspec.Struct):
    """What is known of one class's text."""

    prefix: ClassPrefix
    path: bytes
    body: dict[str, object]
    """What all samples have in common; only its prompt and what renders it."""
    samples: int = 1
    size: int = 0

    @property
    def usable(self) -> bool:
        """Whether more than one request had it."""
        return self.samples >= LEAST_SAMPLES


class PrefixTexts:
    """Keeps texts while the configuration allows it. One owner, one thread."""

    def __init__(self) -> None:
        self.rule: PreloadConfig | None = None
        """None: nothing is kept."""
        self._silent: frozenset[str] = frozenset()
        self._texts: dict[bytes, ClassText] = {}
        self._wanted: list[ClassPrefix] = []
        """Classes whose text is not settled yet."""
        self._refused: set[bytes] = set()
        """Classes whose text cannot be kept: too large, or nothing in common."""

    def configure(self, document: ConfigDocument) -> None:
        """Follow the configuration; what is no longer allowed is forgotten at once."""
        silent = frozenset(tenant.name for tenant in document.tenants if not tenant.keep_prefixes)
        if document.preload is None or silent - self._silent:
            self.forget()
        self.rule, self._silent = document.preload, silent

    def forget(self) -> None:
        """Drop every text."""
        self._texts.clear()
        self._wanted = []
        self._refused.clear()

    def follow(self, classes: Iterable[ClassPrefix]) -> None:
        """Want the texts of the most frequent classes, and let go of all others."""
        if self.rule is None:
            return
        wanted = list(classes)[: self.rule.max_classes]
        keys = {prefix.key for prefix in wanted}
        self._texts = {key: text for key, text in self._texts.items() if key in keys}
        self._refused &= keys
        self._wanted = [prefix for prefix in wanted if not self._settled(prefix.key)]

    def offer(self, path: bytes, chain: bytes, body: bytes, tenant: str | None) -> None:
        """Learn from a request, if its class is wanted. Costs a few comparisons for any other."""
        if not self._wanted or tenant in self._silent or path not in COMMON or len(body) > MOST_SAMPLE_BYTES:
            return
        for prefix in self._wanted:
            if prefix.holds(chain):
                self._learn(prefix, path, body)
                if self._settled(prefix.key):
                    self._wanted = [other for other in self._wanted if other is not prefix]
                return

    def text_of(self, key: bytes) -> ClassText | None:
        """Return the text of a class, once more than one request had it."""
        text = self._texts.get(key)
        return text if text is not None and text.usable else None

    def annotated(self, samples: Sequence[HotClassSample]) -> tuple[HotClassSample, ...]:
        """Say in reports of classes how much text of each is kept."""
        if self.rule is None:
            return tuple(samples)
        sizes = {class_id(key): text.size for key, text in self._texts.items() if text.usable}
        return tuple(replace(sample, text_bytes=sizes.get(sample.id, 0)) for sample in samples)

    def _learn(self, prefix: ClassPrefix, path: bytes, body: bytes) -> None:
        fields = orjson.loads(body)
        known = self._texts.get(prefix.key)
        if known is None:
            self._texts[prefix.key] = ClassText(prefix, path, fields)
            return
        common = COMMON[path](known.body, fields) if known.path == path else None
        size = 0 if common is None else len(orjson.dumps(common))
        if common is None or self.rule is None or size > self.rule.max_bytes:
            del self._texts[prefix.key]
            self._refused.add(prefix.key)
            return
        known.body, known.samples, known.size = common, known.samples + 1, size

    def _settled(self, key: bytes) -> bool:
        text = self._texts.get(key)
        return key in self._refused or (text is not None and text.samples >= SAMPLES)
