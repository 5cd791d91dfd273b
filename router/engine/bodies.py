"""The JSON that vLLM 0.32 writes, key for key in its order (compared with recordings in the tests).

Pure functions from a request and counts to bytes. Bodies of whole answers are serialised; a stream's chunks are
templates around the one thing that changes from token to token.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from router.engine.generation import Endpoint, FinishReason, Generation
from router.engine.models import ServedModels
from router.engine.tokens import ids_of, text_of

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer; ``cacheable_tokens`` of the prompt are in full KV blocks."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cacheable_tokens: int = 0

    @property
    def created_cache_tokens(self) -> int:
        return max(0, self.cacheable_tokens - self.cached_tokens)


@dataclass(frozen=True, slots=True)
class Choice:
    """One finished sequence of a whole answer."""

    index: int
    prompt: bytes
    output: bytes
    reason: FinishReason


class Envelope:
    """What is the same in every chunk and body of one answer."""

    __slots__ = ("_fingerprint", "_generation", "_head", "_is_chat")

    def __init__(self, generation: Generation, created: int, fingerprint: str) -> None:
        self._generation = generation
        self._is_chat = generation.endpoint is Endpoint.CHAT
        self._fingerprint = orjson.dumps(fingerprint)
        kind = "chat.completion.chunk" if self._is_chat else "text_completion"
        self._head = orjson.dumps({"id": generation.id, "object": kind, "created": created, "model": generation.model})[
            :-1
        ]

    def role_chunk(self, index: int, prompt: bytes, usage: Usage | None) -> bytes:
        """The first chunk of a chat choice; ``usage`` only with continuous usage statistics."""
        ids = orjson.dumps(ids_of(prompt)) if self._generation.options.token_ids else b"null"
        choice = b'{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}' % index
        rest = b',"prompt_token_ids":%b,"prompt_text":null' % ids
        return self._chunk(choice, self._running_usage(usage) + rest)

    def token_chunk(self, index: int, token: bytes, usage: Usage | None, prompt: bytes | None = None) -> bytes:
        """A chunk with tokens that are not the last ones; ``prompt`` only in a text completion's first chunk."""
        return self._chunk(self._choice(index, token, None, prompt), self._running_usage(usage))

    def last_chunk(
        self, index: int, token: bytes, reason: FinishReason, usage: Usage | None, prompt: bytes | None = None
    ) -> bytes:
        """The chunk that ends a choice."""
        rest = b"" if self._generation.options.include_usage else b',"system_fingerprint":' + self._fingerprint
        return self._chunk(self._choice(index, token, reason, prompt), self._running_usage(usage) + rest)

    def usage_chunk(self, usage: Usage) -> bytes:
        """The chunk without choices that ends a stream with usage."""
        counts = _counts(usage)
        details: dict[str, int] = {"cached_tokens": usage.cached_tokens}
        if self._is_chat:
            details["created_cache_tokens"] = usage.created_cache_tokens
        counts["prompt_tokens_details"] = details
        rest = b',"usage":%b,"system_fingerprint":%b' % (orjson.dumps(counts), self._fingerprint)
        return self._chunk(b"", rest)

    def whole(self, choices: list[Choice], usage: Usage) -> bytes:
        """The body of an answer that was not streamed."""
        head = self._head.replace(b'"chat.completion.chunk"', b'"chat.completion"', 1)
        tail = _CHAT_TAIL if self._is_chat else _COMPLETION_TAIL
        rest: dict[str, Any] = {
            "choices": [self._whole_choice(choice) for choice in choices],
            "service_tier": None,
            "system_fingerprint": orjson.loads(self._fingerprint),
            "usage": self._whole_usage(usage),
        }
        if self._is_chat:
            ids = ids_of(choices[0].prompt) if self._generation.options.token_ids else None
            rest |= {"prompt_logprobs": None, "prompt_token_ids": ids, "prompt_text": None}
        return head + b"," + orjson.dumps(rest | tail)[1:]

    def _choice(self, index: int, token: bytes, reason: FinishReason | None, prompt: bytes | None) -> bytes:
        ids = b"null"
        prompt_ids = b"null"
        if self._generation.options.token_ids:
            ids = orjson.dumps(ids_of(token))
            prompt_ids = orjson.dumps(ids_of(prompt)) if prompt is not None else b"null"
        text = orjson.dumps(text_of(token))
        ending = b"null" if reason is None else b'"%b"' % reason.value.encode()
        if self._is_chat:
            stop = b"" if reason is None else b'"stop_reason":null,'
            return b'{"index":%d,"delta":{"content":%b},"logprobs":null,"finish_reason":%b,%b"token_ids":%b}' % (
                index, text, ending, stop, ids,
            )  # fmt: skip
        return (
            b'{"index":%d,"text":%b,"logprobs":null,"finish_reason":%b,"stop_reason":null,"prompt_token_ids":%b,'
            b'"token_ids":%b}' % (index, text, ending, prompt_ids, ids)
        )

    def _chunk(self, choice: bytes, rest: bytes) -> bytes:
        return b'data: %b,"choices":[%b]%b}\n\n' % (self._head, choice, rest)

    def _running_usage(self, usage: Usage | None) -> bytes:
        if usage is None:
            return b""
        return b',"usage":' + orjson.dumps(_counts(usage) | {"completion_tokens_details": None})

    def _whole_choice(self, choice: Choice) -> dict[str, Any]:
        options = self._generation.options
        ids = ids_of(choice.output) if options.token_ids else None
        text = text_of(choice.output)
        ending = {"logprobs": None, "finish_reason": choice.reason.value, "stop_reason": None, "token_ids": ids}
        if self._is_chat:
            return {"index": choice.index, "message": _message(text)} | ending | {"routed_experts": None}
        prompt_ids = ids_of(choice.prompt) if options.token_ids else None
        shown = text_of(choice.prompt) + text if options.echo else text
        extra = {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "routed_experts": None}
        return {"index": choice.index, "text": shown} | ending | extra

    def _whole_usage(self, usage: Usage) -> dict[str, Any]:
        created = usage.created_cache_tokens if self._is_chat else None
        details = {"cached_tokens": usage.cached_tokens, "created_cache_tokens": created, "multimodal_tokens": None}
        return _counts(usage) | {"prompt_tokens_details": details, "completion_tokens_details": None}


_COMPLETION_TAIL = {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
_CHAT_TAIL = _COMPLETION_TAIL


def models_body(models: ServedModels, created: int) -> bytes:
    """The list of ``/v1/models``; adapters name their parent."""
    return orjson.dumps({"object": "list", "data": [_model(name, models, created) for name in models.names]})


def _model(name: str, models: ServedModels, created: int) -> dict[str, Any]:
    permission = {
        "id": f"modelperm-{abs(hash((name, created))):016x}"[:26],
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": name,
        "parent": models.parent(name),
        "max_model_len": models.max_model_len,
        "permission": [permission],
    }


def _message(text: str) -> dict[str, Any]:
    empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    return {"role": "assistant", "content": text} | empty


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "completion_tokens": usage.completion_tokens,
    }
