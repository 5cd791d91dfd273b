"""One observation: a linear equation in the costs of an engine's steps.

``steps * t0_s + prefill_tokens * prefill_s_per_token + sequence_steps * decode_s_per_sequence
+ kv_token_steps * decode_s_per_kv_token (+ a constant, for a first token) = took_s``
"""

from enum import Enum
from math import ceil

import msgspec


class RowKind(Enum):
    """What was observed."""

    FIRST = "first"
    """From placing a request to its first token, where nothing was queued: prefill, and what a request costs at all."""
    DECODE = "decode"
    """From the first token to the last, with the prefill of others in between."""
    PREFILL = "prefill"
    """What the engine itself measured of its prefill."""


class CostRow(msgspec.Struct, frozen=True, gc=False):
    """One equation. ``took_s`` > 0; every count >= 0, not all of them 0."""

    kind: RowKind
    steps: float
    prefill_tokens: float
    sequence_steps: float
    """Sequences that decode, summed over the steps."""
    kv_token_steps: float
    """KV tokens that they attend to, summed over the steps."""
    took_s: float
    weight: float = 1.0
    """What it counts for (above 0, at most 1)."""

    @property
    def octave(self) -> int:
        """Its size class: of the prompt where it is prefill, of the batch where it is decode; powers of two."""
        size = self.sequence_steps / self.steps if self.kind is RowKind.DECODE else self.prefill_tokens
        return int(size).bit_length()


def first_token_row(
    uncached_tokens: int, took_s: float, *, sequences: float, kv_tokens: float, max_batch_tokens: int
) -> CostRow:
    """Return the equation of a first token that waited for nothing but its own prefill, beside a decoding batch."""
    steps = ceil(uncached_tokens / max_batch_tokens)
    return CostRow(RowKind.FIRST, steps, uncached_tokens, steps * sequences, steps * kv_tokens, took_s)


def decode_row(
    steps: int, took_s: float, *, sequences: float, kv_tokens: float, prefill_tokens: int, weight: float = 1.0
) -> CostRow:
    """Return the equation of ``steps`` decode steps, in a mean batch and with the prefill of others in between."""
    return CostRow(RowKind.DECODE, steps, prefill_tokens, steps * sequences, steps * kv_tokens, took_s, weight)


def prefill_row(tokens: int, busy_s: float, max_batch_tokens: int) -> CostRow:
    """Return the equation of prefill that the engine measured, in full steps."""
    return CostRow(RowKind.PREFILL, tokens / max_batch_tokens, tokens, 0.0, 0.0, busy_s)
