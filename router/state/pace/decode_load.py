"""How much an instance decoded over time: running integrals, so that the mean batch of any stretch is a difference."""

import msgspec


class DecodeTotals(msgspec.Struct, frozen=True, gc=False):
    """The integrals at one moment."""

    at_s: float
    sequence_s: float
    kv_token_s: float
    prefill_tokens: int
    """Prompt tokens that were prefilled so far."""


class DecodeLoad:
    """Decoding sequences and their KV tokens, integrated over time; told whenever one of them changes."""

    __slots__ = ("_at_s", "_kv_token_s", "_kv_tokens", "_sequence_s", "_sequences", "prefill_tokens")

    def __init__(self) -> None:
        self._at_s = 0.0
        self._sequences = 0
        self._kv_tokens = 0
        self._sequence_s = 0.0
        self._kv_token_s = 0.0
        self.prefill_tokens = 0

    def totals(self, now_s: float) -> DecodeTotals:
        """Return the integrals up to now."""
        self._advance(now_s)
        return DecodeTotals(now_s, self._sequence_s, self._kv_token_s, self.prefill_tokens)

    def change(self, sequences: int, kv_tokens: int, now_s: float) -> None:
        """From now on so many sequences decode, which attend to so many tokens."""
        self._advance(now_s)
        self._sequences = sequences
        self._kv_tokens = kv_tokens

    def _advance(self, now_s: float) -> None:
        passed_s = now_s - self._at_s
        self._at_s = now_s
        self._sequence_s += passed_s * self._sequences
        self._kv_token_s += passed_s * self._kv_tokens
