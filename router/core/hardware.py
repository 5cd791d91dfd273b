"""Hardware profiles: what a kind of accelerator costs per step, as plain numbers.

A profile serves two readers: the simulator (step times) and normalised scoring (a prefill rate and a decode cost).
Profiles are estimates for one model size (about 30B total, 3B active parameters) unless their source says otherwise;
they are corrected online from observed latencies where traffic exists.
"""

import msgspec

REFERENCE_BATCH = 32
"""Batch at which a profile's decode cost is read for normalised scoring (sequences)."""


class HardwareProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one engine step on one kind of hardware.

    ``step_s = t0_s + prefill_tokens * prefill_s_per_token + sequences * decode_s_per_sequence
    + kv_tokens * decode_s_per_kv_token`` where the last two terms count decoding sequences only.
    """

    name: str
    t0_s: float
    prefill_s_per_token: float
    decode_s_per_sequence: float
    decode_s_per_kv_token: float
    kv_capacity_tokens: int
    max_batch_tokens: int = 8192
    max_sequences: int = 256
    source: str = "custom"

    @property
    def prefill_tokens_per_s(self) -> float:
        """Prefill rate of a full step, in tokens per second."""
        return self.max_batch_tokens / self.step_s(prefill_tokens=self.max_batch_tokens)

    @property
    def decode_cost_s(self) -> float:
        """Step time at the fixed reference batch, in seconds."""
        return self.step_s(sequences=REFERENCE_BATCH)

    def step_s(self, *, prefill_tokens: int = 0, sequences: int = 0, kv_tokens: int = 0) -> float:
        """Return the duration of one step in seconds (all counts >= 0)."""
        return (
            self.t0_s
            + prefill_tokens * self.prefill_s_per_token
            + sequences * self.decode_s_per_sequence
            + kv_tokens * self.decode_s_per_kv_token
        )
