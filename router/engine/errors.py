"""What a request can do wrong, in vLLM's words.

::

    EngineError
    ├── ApiError         answered to the client with a status and a JSON body
    └── ConfigurationError   the operator's fault: options that cannot be served

The functions below are the only places that know vLLM's phrases; each was compared with recorded answers.
"""

import json
from typing import Any

import orjson


class EngineError(Exception):
    """Base of the simulated engine's errors; ``code`` is stable."""

    code = "engine_error"


class ConfigurationError(EngineError):
    """Options that cannot be served, for example a context longer than the KV cache."""

    code = "engine_configuration"


class ApiError(EngineError):
    """An answer other than 200, with vLLM's error object as its body."""

    code = "api_error"

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.detail = {"message": message, "type": kind, "param": param, "code": status}

    @property
    def body(self) -> bytes:
        """The JSON body of a plain answer."""
        return orjson.dumps({"error": self.detail})

    @property
    def event(self) -> bytes:
        """The same inside a stream that has already begun with 200 (vLLM writes it with spaces)."""
        return b"data: " + json.dumps({"error": self.detail}).encode() + b"\n\n"


def unknown_model(name: str, served: tuple[str, ...]) -> ApiError:
    aliases = ", ".join(served)
    return ApiError(404, f"The model `{name}` does not exist. Valid aliases: {aliases}.", "NotFoundError", "model")


def invalid_json(body: bytes) -> ApiError:
    """Explain why ``body`` is no JSON, with the position in the error's ``param``."""
    reason, position = "Expecting value", 0
    try:
        json.loads(body.decode(errors="replace"))
    except json.JSONDecodeError as error:
        reason, position = error.msg, error.pos
    return _validation("json_invalid", f"body.{position}", "JSON decode error", "<dict of 0 items>", {"error": reason})


def not_an_object(value: Any) -> ApiError:
    message = "Input should be a valid dictionary or object to extract fields from"
    return _validation("model_attributes_type", "body", message, value)


def missing_field(name: str, fields: int) -> ApiError:
    return _validation("missing", f"body.{name}", "Field required", f"<dict of {fields} items>")


def invalid_field(name: str, kind: str, message: str, value: Any) -> ApiError:
    return _validation(kind, f"body.{name}", message, value)


def invalid_value(message: str, param: str, value: Any = None) -> ApiError:
    suffix = f"(parameter={param})" if value is None else f"(parameter={param}, value={value})"
    return ApiError(400, f"{message} {suffix}", param=param)


def prompt_too_long(limit: int, tokens: int, *, exact: bool) -> ApiError:
    """A prompt that fills the context; text is only counted up to one token over the limit, ids are counted exactly."""
    counted = f"{tokens}" if exact else f"at least {limit + 1}"
    message = (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {counted} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."
    )
    return invalid_value(message, "input_tokens", tokens if exact else limit + 1)


def answer_too_long(limit: int, prompt_tokens: int, max_tokens: int) -> ApiError:
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {max_tokens} output tokens "
        f"and your prompt contains {prompt_tokens} input tokens, for a total of {prompt_tokens + max_tokens} tokens. "
        "Please reduce the length of the input prompt or the number of requested output tokens."
    )
    return invalid_value(message, "input_tokens", prompt_tokens)


def overloaded() -> ApiError:
    busy = "The engine is currently busy and cannot accept new requests."
    return ApiError(503, f"{busy} Please try again later or on a different instance.", "Service Unavailable")


def shutting_down() -> ApiError:
    return ApiError(500, "cannot schedule new futures after shutdown", "InternalServerError")


def engine_dead() -> ApiError:
    message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return ApiError(500, message, "InternalServerError")


def _validation(kind: str, where: str, message: str, value: Any, context: dict[str, str] | None = None) -> ApiError:
    problem: dict[str, Any] = {"type": kind, "loc": where, "msg": message, "input": value}
    if context is not None:
        problem["ctx"] = context
    return ApiError(400, f"1 validation error:\n  {problem}", "Bad Request", where)
