"""An engine's own tokenizer, over HTTP: what a conversation or a text becomes there."""

from typing import Any

import msgspec
import orjson

from router.proxy.fetch import Fetched, FetchFailed
from router.proxy.link import Link
from router.unreadable import UNREADABLE

PATH = b"/tokenize"
LIMIT_S = 5.0
ANSWER_S = 2.0
"""For answers that cost an engine nothing."""
TEMPLATE_FIELDS = (
    "tools",
    "documents",
    "chat_template",
    "chat_template_kwargs",
    "mm_processor_kwargs",
    "add_special_tokens",
)
"""Members of a request that the engine needs to render it, and takes at its tokenizer as well."""
_UNUSABLE = frozenset({401, 403, 404, 405, 501})
"""Statuses that say something of the engine and not of the text."""


class TokenizeFailed(Exception):
    """No tokens came; ``for_good`` when the next text would fare no better."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


class _Tokens(msgspec.Struct):
    tokens: list[int]


_decoder = msgspec.json.Decoder(_Tokens)


def chat_body(model: str, request: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Return what to ask for the tokens of a conversation as it stands in a cache, the next answer not yet begun."""
    rendering = {name: request[name] for name in TEMPLATE_FIELDS if request.get(name) is not None}
    return {"model": model, "messages": messages, "add_generation_prompt": False, **rendering}


def text_body(model: str, request: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what to ask for the tokens of a text."""
    special = request.get("add_special_tokens")
    return {"model": model, "prompt": text} | ({} if special is None else {"add_special_tokens": special})


async def tokenize(link: Link, body: dict[str, Any]) -> list[int]:
    """Ask an engine for tokens.

    :raises TokenizeFailed: when none came.
    """
    try:
        answer = await link.ask(PATH, body=orjson.dumps(body), limit_s=LIMIT_S)
    except FetchFailed as error:
        raise TokenizeFailed(str(error)) from error
    return _tokens(answer)


async def check_tokenizer(link: Link, model: str) -> None:
    """Have a conversation of one message tokenised.

    :raises TokenizeFailed: when the engine does not do that.
    """
    tokens = await tokenize(link, chat_body(model, {}, [{"role": "user", "content": "hello"}]))
    if not tokens:
        raise TokenizeFailed("its /tokenize does not take messages", for_good=True)


def _tokens(answer: Fetched) -> list[int]:
    if answer.status in _UNUSABLE:
        raise TokenizeFailed(f"its /tokenize answers {answer.status}", for_good=True)
    if answer.status != 200:
        raise TokenizeFailed(f"its /tokenize refuses with {answer.status}")
    try:
        return _decoder.decode(answer.body).tokens
    except UNREADABLE as error:
        raise TokenizeFailed(f"its /tokenize gives no token ids: {error}", for_good=True) from error
