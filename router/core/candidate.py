"""One instance as a candidate for one request: the view and what this request would cost there."""

import msgspec

from router.core.instance import InstanceView


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An instance with the tokens of this prompt that it holds (``hit_tokens``) and must prefill (``new_tokens``)."""

    view: InstanceView
    hit_tokens: int
    new_tokens: int
    p_offset: int = 0
    """Tokens that a cold instance is charged beyond what it must prefill."""
    bs_floor: int = 0
    """What BS counts as at least (cold instances)."""
    factor: float = 1.0
    """What the score is multiplied with (spot instances, the balance between kinds of hardware)."""
    exact: bool = False
    """Whether ``hit_tokens`` is the engine's own word (KV events) and not an estimate."""

    @property
    def p_token(self) -> int:
        """Queued prefill tokens there, plus the new ones of this request, plus the offset of a cold start."""
        return self.view.queued_prefill_tokens + self.new_tokens + self.p_offset

    @property
    def bs(self) -> int:
        """Requests there, plus this one; at a cold instance possibly counted as more."""
        bs = self.view.bs + 1
        return bs if bs >= self.bs_floor else self.bs_floor


def hit_tokens(matched_blocks: int, tokens_per_block: float, prompt_tokens: int, kv_block_tokens: int) -> int:
    """Return the cached tokens that an engine can use: whole KV blocks, at most ``prompt_tokens - 1``.

    An engine always recomputes at least one token, so a fully cached prompt of n tokens hits
    ``floor((n - 1) / block) * block`` (vLLM's rule, ``usage.prompt_tokens_details.cached_tokens``).
    """
    usable = int(matched_blocks * tokens_per_block)
    if usable >= prompt_tokens:
        usable = prompt_tokens - 1
    return usable - usable % kv_block_tokens
