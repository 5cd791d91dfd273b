"""From a request body to what the engine must generate: checked, tokenised, and with its limits settled."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from router.engine.chat_template import ROLES, render_chat
from router.engine.errors import (
    ApiError,
    answer_too_long,
    invalid_field,
    invalid_value,
    prompt_too_long,
    unknown_model,
)
from router.engine.fields import Fields
from router.engine.models import ServedModels
from router.engine.tokens import VOCABULARY_SIZE, count_of, pack_ids, pack_text

COMPLETION_DEFAULT_TOKENS = 16
"""What text completions generate when nobody asks for a number (the OpenAI default)."""


class Endpoint(Enum):
    """Which of the two shapes an answer takes."""

    CHAT = "chatcmpl"
    COMPLETION = "cmpl"


class FinishReason(Enum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Options:
    """How the answer is to be written."""

    stream: bool
    include_usage: bool
    continuous_usage: bool
    token_ids: bool
    echo: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt (packed tokens) and how much is generated for it."""

    packed: bytes
    output_tokens: int
    natural_end: FinishReason

    @property
    def tokens(self) -> int:
        return count_of(self.packed)


@dataclass(frozen=True, slots=True)
class Generation:
    """A checked request: ``choices`` sequences for each of ``prompts``."""

    id: str
    endpoint: Endpoint
    model: str
    adapter: str | None
    cache_salt: str | None
    prompts: tuple[Prompt, ...]
    choices: int
    seed: int
    options: Options


def parse_chat(body: bytes, models: ServedModels, request_id: str | None) -> Generation:
    """Read a chat completion request.

    :raises ApiError: what vLLM answers instead.
    """
    fields = Fields.of_body(body)
    messages = _messages(fields)
    return _generation(fields, models, request_id, Endpoint.CHAT, lambda: [(_render(messages, fields), False)])


def parse_completion(body: bytes, models: ServedModels, request_id: str | None) -> Generation:
    """Read a text completion request: one prompt or several, as text or token ids.

    :raises ApiError: what vLLM answers instead.
    """
    fields = Fields.of_body(body)
    return _generation(
        fields, models, request_id, Endpoint.COMPLETION, lambda: _completion_prompts(fields.get("prompt"))
    )


def render_prompt(fields: Fields) -> bytes:
    """Return the packed prompt of a body with ``messages`` or ``prompt``, as ``/tokenize`` takes it."""
    if fields.get("messages") is not None:
        answering = fields.get("add_generation_prompt") is None or fields.flag("add_generation_prompt")
        return _render(_messages(fields), fields, answering=answering)
    prompt = fields.required("prompt")
    if not isinstance(prompt, str):
        raise invalid_field("prompt", "string_type", "Input should be a valid string", prompt)
    return pack_text(prompt)


def _generation(
    fields: Fields,
    models: ServedModels,
    request_id: str | None,
    endpoint: Endpoint,
    prompts: Callable[[], list[tuple[bytes, bool]]],
) -> Generation:
    options = _options(fields)
    choices = _choices(fields)
    model = fields.text("model") or models.default
    if model not in models:
        raise unknown_model(model, models.names)
    seed = fields.integer("seed") or 0
    return Generation(
        id=f"{endpoint.value}-{request_id or secrets.token_hex(8)}",
        endpoint=endpoint,
        model=model,
        adapter=models.adapter(model),
        cache_salt=fields.text("cache_salt"),
        prompts=tuple(_prompt(packed, exact, fields, endpoint, models) for packed, exact in prompts()),
        choices=choices,
        seed=seed,
        options=options,
    )


def _options(fields: Fields) -> Options:
    stream = fields.flag("stream")
    stream_options = fields.object("stream_options")
    if stream_options is not None and not stream:
        raise invalid_value("Stream options can only be defined when `stream=True`.", "stream_options")
    usage = stream_options is not None and stream_options.flag("include_usage")
    return Options(
        stream=stream,
        include_usage=usage,
        continuous_usage=usage and stream_options is not None and stream_options.flag("continuous_usage_stats"),
        token_ids=fields.flag("return_token_ids"),
        echo=fields.flag("echo"),
    )


def _choices(fields: Fields) -> int:
    choices = fields.integer("n")
    temperature = fields.number("temperature")
    if temperature is not None and temperature < 0:
        shown = float(temperature)
        raise invalid_value(f"temperature must be non-negative, got {shown}.", "temperature", shown)
    if choices is None:
        return 1
    if choices < 1:
        raise ApiError(400, f"n must be at least 1, got {choices}.")
    if choices > 1 and temperature == 0:
        raise ApiError(400, f"n must be 1 when using greedy sampling, got {choices}.")
    return choices


def _prompt(packed: bytes, exact: bool, fields: Fields, endpoint: Endpoint, models: ServedModels) -> Prompt:
    limit = models.max_model_len
    asked = _max_tokens(fields, endpoint, limit)
    tokens = count_of(packed)
    if tokens >= limit:
        raise prompt_too_long(limit, tokens, exact=exact)
    if asked is None:
        floor = fields.integer("min_tokens") or 0
        length = min(limit - tokens, max(floor, _default_length(packed, limit - tokens)))
        return Prompt(packed, length, FinishReason.STOP)
    if tokens + asked > limit:
        raise answer_too_long(limit, tokens, asked)
    return Prompt(packed, asked, FinishReason.LENGTH)


def _default_length(seed: bytes, limit: int) -> int:
    """Return how many tokens the model says when nobody asks: 16 to 527, skewed to short, at most ``limit``."""
    draw = int.from_bytes(hashlib.shake_128(seed + b"length").digest(4), "little") / 2**32
    return max(1, min(limit, 16 + int(512 * draw**2)))


def _max_tokens(fields: Fields, endpoint: Endpoint, limit: int) -> int | None:
    asked = fields.integer("max_tokens")
    if endpoint is Endpoint.CHAT:
        newer = fields.integer("max_completion_tokens")
        asked = newer if newer is not None else asked
    elif asked is None:
        asked = COMPLETION_DEFAULT_TOKENS
    if asked is not None and asked < 1:
        raise invalid_value(f"max_tokens must be at least 1, got {asked}.", "max_tokens", asked)
    if asked is not None and asked > limit:
        message = (
            f"max_tokens={asked} cannot be greater than max_model_len={limit}. Please request fewer output tokens."
        )
        raise invalid_value(message, "max_tokens", asked)
    return asked


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = fields.required("messages")
    if not isinstance(messages, list):
        raise invalid_field("messages", "list_type", "Input should be a valid list", messages)
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            where = f"messages.{index}.role"
            raise invalid_field(where, "literal_error", f"Input should be one of {sorted(ROLES)}", role)
        _check_content(message.get("content"), index)
    if not messages:
        raise invalid_value("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    return messages


def _check_content(content: Any, index: int) -> None:
    if content is not None and not isinstance(content, str | list):
        raise invalid_field(f"messages.{index}.content", "string_type", "Input should be a valid string", content)


def _render(messages: list[dict[str, Any]], fields: Fields, *, answering: bool = True) -> bytes:
    tools = fields.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise invalid_field("tools", "list_type", "Input should be a valid list", tools)
    return render_chat(messages, tools, answering=answering)


def _completion_prompts(prompt: Any) -> list[tuple[bytes, bool]]:
    """Return each prompt packed, and whether it came as token ids (then its length is known exactly)."""
    if not prompt:
        raise invalid_value("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if isinstance(prompt, str):
        return [(pack_text(prompt), False)]
    if isinstance(prompt, list) and all(isinstance(item, int) for item in prompt):
        return [(_checked_ids(prompt), True)]
    if isinstance(prompt, list) and all(isinstance(item, str | list) and item for item in prompt):
        return [_completion_prompts(item)[0] for item in prompt]
    raise invalid_field("prompt", "string_type", "Input should be a valid string", prompt)


def _checked_ids(ids: list[int]) -> bytes:
    for token in ids:
        if not 0 <= token < VOCABULARY_SIZE:
            raise ApiError(400, f"Token id {token} is out of vocabulary")
    return pack_ids(ids)
