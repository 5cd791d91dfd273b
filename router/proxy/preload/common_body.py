"""What two request bodies of one prefix class have in common: the part of the prompt that is no single user's own."""

from collections.abc import Callable, Mapping
from typing import Any

from router.proxy.prompt.chat import CHAT_TEMPLATE_FIELDS
from router.proxy.prompt.value import Body

Common = Callable[[Body, Body], dict[str, Any] | None]


def common_chat(one: Body, other: Body) -> dict[str, Any] | None:
    """Return the model, the template arguments and the leading messages that both share; None without any.

    A message that both begin alike is kept as far as they agree.
    """
    names = ("model", *CHAT_TEMPLATE_FIELDS)
    if any(one.get(name) != other.get(name) for name in names):
        return None
    messages = _common_messages(one.get("messages"), other.get("messages"))
    kept = {name: one[name] for name in names if name in one}
    return {**kept, "messages": messages} if messages else None


def common_completion(one: Body, other: Body) -> dict[str, Any] | None:
    """Return the model and the beginning of the prompt that both share; None without any."""
    first, second = one.get("prompt"), other.get("prompt")
    if one.get("model") != other.get("model") or not (isinstance(first, str) and isinstance(second, str)):
        return None
    prompt = _common_text(first, second)
    return {"model": one.get("model"), "prompt": prompt} if prompt else None


COMMON: Mapping[bytes, Common] = {
    b"/v1/chat/completions": common_chat,
    b"/v1/completions": common_completion,
}
"""By path; the text of other paths is not kept."""


def _common_text(one: str, other: str) -> str:
    """Return how the two begin alike, found by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return one[:low]


def _common_messages(one: Any, other: Any) -> list[dict[str, Any]]:
    shared: list[dict[str, Any]] = []
    if not (isinstance(one, list) and isinstance(other, list)):
        return shared
    for first, second in zip(one, other, strict=False):
        if first != second:
            cut = _common_message(first, second)
            return [*shared, cut] if cut is not None else shared
        if not isinstance(first, dict):
            return shared
        shared.append(first)
    return shared


def _common_message(one: Any, other: Any) -> dict[str, Any] | None:
    """Return a message cut where the two begin to differ; None when they share nothing or are not plain text."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return None
    first, second = one.get("content"), other.get("content")
    rest_is_equal = {**one, "content": None} == {**other, "content": None}
    if not (rest_is_equal and isinstance(first, str) and isinstance(second, str)):
        return None
    content = _common_text(first, second)
    return {**one, "content": content} if content else None
