"""One sequence in generation: a prompt, the text that will follow, and how far it has got."""

from typing import Protocol

from router.engine.errors import ApiError
from router.engine.generation import FinishReason
from router.engine.tokens import TOKEN_BYTES, count_of


class Listener(Protocol):
    """Whoever writes the answer of one or more sequences."""

    def token(self, sequence: "Sequence") -> None:
        """A sequence has one more token; when it was the last, ``sequence.reason`` says why."""
        ...

    def aborted(self, sequence: "Sequence") -> None:
        """A sequence ended before its time."""
        ...

    def fail(self, error: ApiError) -> None:
        """Nothing more will come; say why."""
        ...


class Sequence:
    """One choice of an answer. Token sequences and the chain are packed; times are monotonic seconds."""

    __slots__ = (
        "adapter",
        "arrived_s",
        "cache_salt",
        "cached_tokens",
        "chain",
        "emitted",
        "id",
        "index",
        "last_token_s",
        "listener",
        "natural_end",
        "output",
        "prompt",
        "reason",
    )

    def __init__(self, index: int, prompt: bytes, output: bytes, natural_end: FinishReason, listener: Listener) -> None:
        self.index = index
        self.prompt = prompt
        self.output = output
        self.natural_end = natural_end
        self.listener = listener
        self.adapter: str | None = None
        self.cache_salt: str | None = None
        self.id = ""
        self.chain = b""
        self.emitted = 0
        self.cached_tokens = 0
        self.reason: FinishReason | None = None
        self.arrived_s = 0.0
        self.last_token_s = 0.0

    @property
    def prompt_tokens(self) -> int:
        return count_of(self.prompt)

    @property
    def output_tokens(self) -> int:
        return count_of(self.output)

    @property
    def newest_token(self) -> bytes:
        """The packed token that was emitted last; empty before the first."""
        end = self.emitted * TOKEN_BYTES
        return self.output[max(0, end - TOKEN_BYTES) : end]

    @property
    def emitted_output(self) -> bytes:
        """What was generated so far, packed."""
        return self.output[: self.emitted * TOKEN_BYTES]

    def advance(self, now_s: float) -> None:
        """Count one more token, and the end when it was the last."""
        self.emitted += 1
        self.last_token_s = now_s
        if self.emitted == self.output_tokens:
            self.reason = self.natural_end
