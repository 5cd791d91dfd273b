"""One request inside an engine.

Life-cycle, as a table::

    phase    event                   next     what happens to its KV blocks
    WAITING  admitted                PREFILL  cached prefix pinned, first chunk allocated
    PREFILL  chunk computed          PREFILL  next chunk allocated
    PREFILL  last chunk computed     DECODE   -
    PREFILL  preempted               WAITING  given back; computed again later
    DECODE   preempted               WAITING  given back; prompt and generated tokens are computed again later
    DECODE   last token              DONE     given back
    any      aborted                 DONE     given back
"""

from enum import Enum

from router.sim.kv_cache import Node
from router.sim.step import EngineRequest


class Phase(Enum):
    """Where a request is in an engine."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"


class Sequence:
    """A request's progress. Token counts only; the blocks themselves are in the cache.

    While it decodes, nothing here changes: its context is ``decode_context + (step - decode_step)`` with the engine's
    step counter, so a step costs the same however many sequences decode.
    """

    __slots__ = (
        "cached_tokens",
        "computed",
        "decode_context",
        "decode_step",
        "finish_step",
        "furthest",
        "generated",
        "held_blocks",
        "node",
        "order",
        "phase",
        "prefilled_tokens",
        "private_blocks",
        "recomputed_tokens",
        "request",
        "target",
    )

    def __init__(self, request: EngineRequest, order: int) -> None:
        self.request = request
        self.order = order
        self.phase = Phase.WAITING
        self.target = request.prompt_tokens
        """Tokens to have computed before the next token can be generated."""
        self.computed = 0
        self.generated = 0
        """Tokens generated before the present decode phase."""
        self.cached_tokens = 0
        """Prompt tokens that another request had computed."""
        self.furthest: int | None = None
        """Prompt tokens that were cached or computed for it at any time; None before the first admission."""
        self.prefilled_tokens = 0
        self.recomputed_tokens = 0
        self.node: Node | None = None
        self.held_blocks = 0
        """Cached blocks pinned by this request: those on the path to ``node``."""
        self.private_blocks = 0
        """Private blocks at the start of the present decode phase, or so far during prefill."""
        self.decode_step = 0
        self.decode_context = 0
        self.finish_step = 0

    def context(self, step: int) -> int:
        """Return the tokens in its KV cache after ``step`` steps of the engine."""
        if self.phase is Phase.DECODE:
            return self.decode_context + step - self.decode_step
        return self.computed

    def generated_until(self, step: int) -> int:
        """Return the tokens generated after ``step`` steps of the engine."""
        return self.generated + (step - self.decode_step if self.phase is Phase.DECODE else 0)

    def admitted(self, hit_tokens: int) -> int:
        """Note an admission with ``hit_tokens`` in the cache; return the prompt tokens that it never had before."""
        self.computed = hit_tokens
        fresh = self._advance(hit_tokens)
        self.cached_tokens += fresh
        return fresh

    def prefilled(self, chunk: int) -> None:
        """Note that the last ``chunk`` of the computed tokens were prefilled."""
        fresh = self._advance(self.computed)
        self.prefilled_tokens += fresh
        self.recomputed_tokens += chunk - fresh

    def start_decode(self, step: int) -> None:
        """Begin to decode after ``step`` steps of the engine."""
        self.phase = Phase.DECODE
        self.decode_step = step
        self.decode_context = self.computed
        self.finish_step = step + self.request.output_tokens - self.generated

    def preempted(self, step: int) -> None:
        """Go back to waiting: what was generated becomes part of what is to be computed."""
        self.generated = self.generated_until(step)
        self.target = self.request.prompt_tokens + self.generated
        self.computed = 0
        self.phase = Phase.WAITING

    def _advance(self, tokens: int) -> int:
        known = self.furthest or 0
        self.furthest = max(known, min(tokens, self.request.prompt_tokens))
        return self.furthest - known
