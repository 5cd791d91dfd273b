"""Prompts that are texts or token ids: completions, embeddings, rerank, score, and paths that are not known."""

from array import array
from collections.abc import Sequence
from typing import Any

from router.proxy.prompt.content import add_content, canonical
from router.proxy.prompt.value import NO_PROMPT, Body, PromptText

_ID_BYTES = 4
_SEPARATOR = "\0"
_MAX_ID = (1 << 32) - 1


def completion_prompt(body: Body) -> PromptText:
    """Extract ``prompt``: a text, token ids, or a batch of either."""
    return _prompt_of(body.get("prompt"))


def embedding_prompt(body: Body) -> PromptText:
    """Extract ``input`` (a text, token ids, or a batch of either), or messages where there are some."""
    return _prompt_of(body.get("input", body.get("messages")))


def rerank_prompt(body: Body) -> PromptText:
    """Extract the query and the documents."""
    return _texts([body.get("query"), body.get("documents")])


def score_prompt(body: Body) -> PromptText:
    """Extract both sides of the comparison, under any of their names."""
    names = ("text_1", "queries", "text_2", "documents", "items", "query")
    return _texts([body[name] for name in names if name in body])


def no_prompt(body: Body) -> PromptText:
    """Count nothing: the endpoint does not prefill."""
    return NO_PROMPT


def unknown_prompt(body: Body) -> PromptText:
    """Take the whole object as the prompt of an endpoint that is not known here."""
    rest = {name: value for name, value in body.items() if name not in ("model", "stream")}
    return PromptText(canonical(rest).encode()) if rest else NO_PROMPT


def _prompt_of(value: Any) -> PromptText:
    if isinstance(value, str):
        return PromptText(value.encode())
    if not isinstance(value, list) or not value:
        return NO_PROMPT
    if _are_ids(value):
        return PromptText(_pack(value), len(value))
    if all(isinstance(member, list) and _are_ids(member) for member in value):
        return PromptText(b"".join(map(_pack, value)), sum(map(len, value)), len(value) > 1)
    return _texts(value)


def _are_ids(values: Sequence[Any]) -> bool:
    return all(type(value) is int and 0 <= value <= _MAX_ID for value in values)


def _pack(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()


def _texts(values: Sequence[Any]) -> PromptText:
    parts: list[str] = []
    for value in values:
        add_content(parts, value)
        parts.append(_SEPARATOR)
    return PromptText("".join(parts).encode())
