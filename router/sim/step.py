"""The values that go into and come out of an engine."""

import msgspec

from router.sim.cost import StepCost, to_s
from router.sim.kv_cache import KvEvent


class EngineRequest(msgspec.Struct, frozen=True, gc=False):
    """One request for an engine: ``prompt_tokens`` >= 1, ``output_tokens`` >= 1 (what it will generate).

    ``blocks`` are the packed chain hashes (8 bytes each) of the prompt's full KV blocks. They may go on into the
    output: the blocks that generated tokens complete are cached when the request ends. Tokens without a block are
    never shared.
    """

    id: str
    prompt_tokens: int
    output_tokens: int
    blocks: bytes = b""


class Step(msgspec.Struct, frozen=True, gc=False):
    """What an engine is about to do: one step, or a run of ``steps`` decode steps in which nothing else happens."""

    steps: int
    prefill_tokens: int
    sequences: int
    """Sequences that decode, each one token a step."""
    kv_tokens: int
    """Tokens that they attend to in the (first) step, the ones being computed included."""
    duration_ps: int
    cost: StepCost

    @property
    def duration_s(self) -> float:
        """Duration of all steps, in seconds."""
        return to_s(self.duration_ps)

    def steps_until(self, elapsed_ps: int) -> int:
        """Return how many steps are over at the first step boundary at or after ``elapsed_ps`` (1 <= result)."""
        if self.steps == 1:
            return 1
        return max(1, min(self.steps, self.cost.steps_until(elapsed_ps, self.sequences, self.kv_tokens)))

    def completed_ps(self, steps: int) -> int:
        """Return the time from the beginning until ``steps`` steps are over."""
        if steps == self.steps:
            return self.duration_ps
        return self.cost.run_ps(steps, self.sequences, self.kv_tokens)


class FirstToken(msgspec.Struct, frozen=True, gc=False):
    """A request produced its first token; ``cached_tokens`` of its prompt were found in the cache."""

    request_id: str
    cached_tokens: int


class Finish(msgspec.Struct, frozen=True, gc=False):
    """A request produced its last token; ``recomputed_tokens`` were prefilled again after preemptions."""

    request_id: str
    prefilled_tokens: int
    recomputed_tokens: int


class StepResult(msgspec.Struct, frozen=True, gc=False):
    """What a step (or run) did. ``tokens`` and ``kv_events`` are only filled by an engine that records details."""

    steps: int
    first_tokens: list[FirstToken]
    finished: list[Finish]
    tokens: list[str]
    """Ids of the requests that produced a token in each of the steps, those in ``first_tokens`` included."""
    kv_events: list[KvEvent]
