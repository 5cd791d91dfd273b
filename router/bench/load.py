"""What a decision is measured against: a fleet that holds known prompts, and prompts that are asked.

All prompts begin with the same text, as under one system prompt. An asked prompt goes on as a known one does up to a
random place, and then differs. Everything is made from numbers, equal in every run.
"""

from random import Random

import msgspec

from router.core.prefix.chain import DEFAULT_BLOCK_BYTES

WIDE_EVERY = 10
WIDE_HOMES = 4
_HOMES_PER_PROMPT = 1 + (WIDE_HOMES - 1) / WIDE_EVERY


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the fleet, of what it holds, and of the prompts."""

    instances: int
    stored_blocks: int = 1_000_000
    """Blocks summed over the instances."""
    prompt_bytes: int = 32_768
    shared_bytes: int = 2_048
    repeats: int = 2_000
    """Timed calls of each kind."""
    asked_prompts: int = 256
    """Different prompts that are asked in turn."""
    seed: int = 1

    @property
    def known_prompts(self) -> int:
        """How many known prompts it takes to hold ``stored_blocks``, and a few more."""
        own_blocks = (self.prompt_bytes - self.shared_bytes) // DEFAULT_BLOCK_BYTES
        return max(1, round(1.05 * self.stored_blocks / own_blocks / _HOMES_PER_PROMPT))

    def known(self, number: int) -> bytes:
        """Return a prompt that its homes have seen."""
        own_bytes = self.prompt_bytes - self.shared_bytes
        return self._rng("shared").randbytes(self.shared_bytes) + self._rng(f"known {number}").randbytes(own_bytes)

    def homes(self, number: int) -> list[int]:
        """Return the slots that have seen a known prompt: one, and every tenth prompt up to four."""
        count = min(self.instances, WIDE_HOMES) if number % WIDE_EVERY == 0 else 1
        first = number + number // WIDE_EVERY
        return [(first + step * (self.instances // count)) % self.instances for step in range(count)]

    def asked(self, number: int) -> tuple[int, bytes]:
        """Return an asked prompt, and the number of the known one that it goes on from."""
        rng = self._rng(f"asked {number}")
        original = rng.randrange(self.known_prompts)
        end = rng.randrange(self.shared_bytes, self.prompt_bytes)
        return original, self.known(original)[:end] + rng.randbytes(self.prompt_bytes - end)

    def _rng(self, purpose: str) -> Random:
        return Random(f"{self.seed} {purpose}")
