"""Prompts to measure with: made from numbers, equal in every run."""

from random import Random

import msgspec

BYTES_PER_TOKEN = 4


class Prompts(msgspec.Struct, frozen=True):
    """Prompts of ``prompt_bytes`` that begin with the same ``shared_bytes``, as under one system prompt."""

    prompt_bytes: int
    shared_bytes: int
    seed: int

    def known(self, number: int) -> bytes:
        """Return a prompt that some instances have seen."""
        own_bytes = self.prompt_bytes - self.shared_bytes
        return Random(self.seed).randbytes(self.shared_bytes) + Random(f"{self.seed} {number}").randbytes(own_bytes)

    def asked(self, number: int, known_count: int) -> bytes:
        """Return a prompt that goes on as a known one does up to a random place, and then differs."""
        rng = Random(f"{self.seed} asked {number}")
        end = rng.randrange(self.shared_bytes, self.prompt_bytes)
        return self.known(self.original(number, known_count))[:end] + rng.randbytes(self.prompt_bytes - end)

    def original(self, number: int, known_count: int) -> int:
        """Return which known prompt an asked one goes on from."""
        return Random(f"{self.seed} original {number}").randrange(known_count)


def homes(number: int, instances: int) -> list[int]:
    """Return the slots that have seen a known prompt: one, for every tenth prompt up to four."""
    count = min(instances, 4) if number % 10 == 0 else 1
    return [(number + step * (instances // count)) % instances for step in range(count)]


def tokens_of(prompt: bytes) -> list[int]:
    """Read a prompt as tokens of four bytes each, as many as whole ones are in it."""
    whole = len(prompt) // BYTES_PER_TOKEN * BYTES_PER_TOKEN
    return memoryview(prompt)[:whole].cast("I").tolist()
