"""How the KV cache of decoding sequences grows, as sums over all of them.

A decode step adds one token to each sequence, and a block to those whose last block is full. Which step that is
depends only on ``(context - step) mod block``, so counting sequences by that residue tells the blocks of any number
of steps without looking at a sequence.
"""


class DecodeGrowth:
    """Number, context and block growth of the sequences that decode."""

    __slots__ = ("_block", "_residues", "kv_tokens", "sequences")

    def __init__(self, kv_block_tokens: int) -> None:
        self._block = kv_block_tokens
        self._residues: dict[int, int] = {}
        self.sequences = 0
        self.kv_tokens = 0
        """Tokens in the KV cache of all decoding sequences."""

    def add(self, context: int, step: int) -> None:
        """Take in a sequence with ``context`` tokens after ``step`` steps."""
        residue = (context - step) % self._block
        self._residues[residue] = self._residues.get(residue, 0) + 1
        self.sequences += 1
        self.kv_tokens += context

    def remove(self, context: int, step: int, now: int) -> None:
        """Take out a sequence that was added with (``context``, ``step``), after ``now`` steps."""
        residue = (context - step) % self._block
        count = self._residues[residue] - 1
        if count:
            self._residues[residue] = count
        else:
            del self._residues[residue]
        self.sequences -= 1
        self.kv_tokens -= context + now - step

    def advance(self, steps: int) -> None:
        """Let every sequence grow by ``steps`` tokens."""
        self.kv_tokens += self.sequences * steps

    def blocks(self, step: int, steps: int) -> int:
        """Return the blocks that ``steps`` decode steps allocate, the first of them after ``step`` steps."""
        if steps <= 0:
            return 0
        block = self._block
        total = 0
        for residue, count in self._residues.items():
            first = -(residue + step) % block
            if first < steps:
                total += count * (1 + (steps - 1 - first) // block)
        return total
