"""Prometheus' text format, written line by line. Knows no metric of its own."""

from collections.abc import Iterable, Mapping, Sequence

from router.core.histogram import BUCKETS_PER_OCTAVE, Counts, lower_edge

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
_US = 1_000_000
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class TextFormat:
    """Collects families of samples and gives the text of a scrape."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, meaning: str, samples: Iterable[Sample]) -> None:
        """Add a counter family (``name`` ends in ``_total``)."""
        self._family(name, meaning, "counter", samples)

    def gauge(self, name: str, meaning: str, samples: Iterable[Sample]) -> None:
        """Add a gauge family."""
        self._family(name, meaning, "gauge", samples)

    def histogram_us(
        self, name: str, meaning: str, octaves: Sequence[int], samples: Iterable[tuple[Labels, Counts, int]]
    ) -> None:
        """Add a histogram family in seconds from (labels, counts in microseconds, their sum in microseconds).

        :param octaves: the edges, as powers of two in microseconds: exact edges of the counts' own buckets.
        """
        self._head(name, meaning, "histogram")
        for labels, counts, sum_us in samples:
            for octave in octaves:
                limit = octave * BUCKETS_PER_OCTAVE
                seen = sum(count for bucket, count in counts.items() if bucket < limit)
                self._line(f"{name}_bucket", {**labels, "le": f"{lower_edge(limit) / _US:g}"}, seen)
            total = sum(counts.values())
            self._line(f"{name}_bucket", {**labels, "le": "+Inf"}, total)
            self._line(f"{name}_sum", labels, sum_us / _US)
            self._line(f"{name}_count", labels, total)

    def encode(self) -> bytes:
        """Return the text."""
        return ("\n".join(self._lines) + "\n").encode()

    def _family(self, name: str, meaning: str, kind: str, samples: Iterable[Sample]) -> None:
        self._head(name, meaning, kind)
        for labels, value in samples:
            self._line(name, labels, value)

    def _head(self, name: str, meaning: str, kind: str) -> None:
        self._lines.append(f"# HELP {name} {meaning}")
        self._lines.append(f"# TYPE {name} {kind}")

    def _line(self, name: str, labels: Labels, value: float) -> None:
        inner = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
        self._lines.append(f"{name}{{{inner}}} {value!r}" if inner else f"{name} {value!r}")
