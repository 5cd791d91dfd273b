"""The simulated chat template: messages to packed tokens.

The one rule it keeps: a conversation's next turn extends the previous prompt *and* the answer to it, token for token,
so that both are found in the prefix cache. Therefore every piece starts on a token boundary, and what the engine
generates is what the client sends back: marker, content, end marker.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from router.engine.tokens import pack_text

_MARKERS = {
    "system": b"<|s>",
    "developer": b"<|s>",
    "user": b"<|u>",
    "assistant": b"<|a>",
    "tool": b"<|t>",
    "function": b"<|t>",
}
_TOOLS = b"<|f>"
_END = b"<|/>"

ROLES = frozenset(_MARKERS)


def render_chat(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None, *, answering: bool = True
) -> bytes:
    """Return the packed prompt; ``answering`` ends it in the marker after which the assistant speaks."""
    parts = [_TOOLS, pack_text(_json(tools)), _END] if tools else []
    for message in messages:
        parts += (_MARKERS[message["role"]], pack_text(_content(message)), _END)
    if answering:
        parts.append(_MARKERS["assistant"])
    return b"".join(parts)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(_part(part) for part in content or ())
    calls = message.get("tool_calls")
    return text + _json(calls) if calls else text


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else _json(part)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
