"""Prompts made of messages: chat completions, Anthropic messages, responses."""

from typing import Any

from router.proxy.prompt.content import add_content, add_fields, canonical
from router.proxy.prompt.value import NO_PROMPT, Body, PromptText

CHAT_TEMPLATE_FIELDS = (
    "tools",
    "functions",
    "documents",
    "chat_template",
    "chat_template_kwargs",
    "reasoning_effort",
    "mm_processor_kwargs",
)
"""Members that change the rendered prompt before its first message."""
MESSAGES_FIELDS = ("tools", "system", "thinking")
RESPONSES_FIELDS = ("tools", "instructions", "reasoning", "prompt", "previous_response_id", "conversation")


def chat_prompt(body: Body) -> PromptText:
    """Extract from ``/v1/chat/completions``: template arguments and tools first, then every message whole."""
    parts: list[str] = []
    add_fields(parts, body, CHAT_TEMPLATE_FIELDS)
    return _with_messages(parts, body.get("messages"))


def messages_prompt(body: Body) -> PromptText:
    """Extract from Anthropic's ``/v1/messages``: tools and system prompt first, then every message whole."""
    parts: list[str] = []
    add_fields(parts, body, MESSAGES_FIELDS)
    return _with_messages(parts, body.get("messages"))


def responses_prompt(body: Body) -> PromptText:
    """Extract from ``/v1/responses``: tools and instructions first, then the input items."""
    parts: list[str] = []
    add_fields(parts, body, RESPONSES_FIELDS)
    given = body.get("input")
    return _with_messages(parts, [{"role": "user", "content": given}] if isinstance(given, str) else given)


def _with_messages(parts: list[str], messages: Any) -> PromptText:
    if isinstance(messages, list):
        for message in messages:
            if isinstance(message, dict):
                _add_message(parts, message)
    return PromptText("".join(parts).encode()) if parts else NO_PROMPT


def _add_message(parts: list[str], message: dict[str, Any]) -> None:
    role = message.get("role")
    parts.append(f"\0{role}\1")
    add_content(parts, message.get("content"))
    if len(message) > 2:
        rest = {name: value for name, value in message.items() if name not in ("role", "content") and value}
        if rest:
            parts.append(canonical(rest))
