"""Conversations of several turns through a router worker in this process, and what each turn showed."""

import time
from dataclasses import dataclass, field
from random import Random

import httpx
import orjson

from router.core.candidate import Candidate
from router.proxy.plane import Plane
from tests.engines.tiny_tokenizer import WORDS
from tests.engines.vllm_server import BLOCK_TOKENS, MODEL

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Turn:
    """One answer: tokens as they were predicted at the decision, and as the engine counted them."""

    instance: str
    exact: bool
    predicted_tokens: int
    cached_tokens: int
    prompt_tokens: int
    ttft_s: float

    @property
    def error_blocks(self) -> float:
        """How much too many blocks were predicted; negative for too few."""
        return (self.predicted_tokens - self.cached_tokens) / BLOCK_TOKENS


@dataclass
class Conversation:
    """Goes on with the very texts of the answers."""

    random: Random
    system: str = ""
    answer_tokens: int = 48
    messages: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.system:
            self.messages.append({"role": "system", "content": self.system})

    async def turn(self, client: httpx.AsyncClient, plane: Plane, words: int, **fields: object) -> Turn:
        """Say so many words, take in the answer, and return what it showed."""
        self.messages.append({"role": "user", "content": text_of(self.random, words)})
        body = {
            "model": MODEL,
            "messages": self.messages,
            "max_tokens": self.answer_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **fields,
        }
        pieces: list[str] = []
        usage: dict[str, object] = {}
        began_s, first_s = time.perf_counter(), 0.0
        async with client.stream("POST", "/v1/chat/completions", json=body, timeout=PATIENCE_S) as answer:
            assert answer.status_code == 200, (await answer.aread()).decode()[:2000]
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                first_s = first_s or time.perf_counter()
                event = orjson.loads(line[6:])
                assert "error" not in event, event
                pieces += (choice["delta"].get("content") or "" for choice in event.get("choices", ()))
                usage = event.get("usage") or usage
        self.messages.append({"role": "assistant", "content": "".join(pieces)})
        chosen = decided(plane, answer.headers["x-pointsman-request-id"])
        return Turn(
            instance=answer.headers["x-pointsman-instance"],
            exact=chosen.exact,
            predicted_tokens=chosen.hit_tokens,
            cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],  # type: ignore[index]
            prompt_tokens=int(usage["prompt_tokens"]),  # type: ignore[call-overload]
            ttft_s=first_s - began_s,
        )


def decided(plane: Plane, request_id: str) -> Candidate:
    """Return the instance that a request went to, as it was seen then."""
    found = plane.recent.find(request_id)
    assert found is not None
    chosen = found.decision.chosen
    assert chosen is not None
    return chosen


def text_of(random: Random, words: int) -> str:
    """Return random words: about a token each."""
    vocabulary = WORDS.split()
    return " ".join(random.choice(vocabulary) for _ in range(words))
