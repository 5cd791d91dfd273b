"""The sequences that decode: when each ends, and what they allocate until then, without a look at every one."""

from heapq import heappop, heappush

from router.sim.growth import DecodeGrowth
from router.sim.sequence import Sequence


class DecodeBatch:
    """Sums over the decoding sequences, and their ends in order of time. Steps are those of the engine's counter."""

    __slots__ = ("_ends", "growth")

    def __init__(self, kv_block_tokens: int) -> None:
        self.growth = DecodeGrowth(kv_block_tokens)
        self._ends: list[tuple[int, int, Sequence]] = []

    def add(self, seq: Sequence, step: int) -> None:
        """Take in a sequence that begins to decode after ``step`` steps."""
        seq.start_decode(step)
        heappush(self._ends, (seq.finish_step, seq.order, seq))
        self.growth.add(seq.decode_context, step)

    def remove(self, seq: Sequence, step: int) -> None:
        """Take out a sequence after ``step`` steps, wherever it is in its decoding."""
        self.growth.remove(seq.decode_context, seq.decode_step, step)
        seq.finish_step = -1

    def due(self, step: int) -> list[Sequence]:
        """Return the sequences that have their last token after ``step`` steps; each is still to be removed."""
        due: list[Sequence] = []
        ends = self._ends
        while ends and ends[0][0] <= step:
            finish_step, _, seq = heappop(ends)
            if seq.finish_step == finish_step:
                due.append(seq)
        return due

    def quiet_steps(self, step: int, limit: int, available: int) -> int:
        """Return how many steps (1 <= result <= limit) can follow each other until a sequence ends or blocks run out.

        :param step: steps done so far; the blocks of the next one are allocated already.
        :param available: blocks that can be allocated for those after it.
        """
        ends = self._ends
        while ends[0][2].finish_step != ends[0][0]:
            heappop(ends)
        steps = min(limit, ends[0][0] - step)
        if self.growth.blocks(step + 1, steps - 1) <= available:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.growth.blocks(step + 1, middle - 1) <= available:
                low = middle
            else:
                high = middle
        return low
