"""Which path is served how: a literal table. A path under ``/v1/`` that is not in it is passed on all the same."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from router.proxy.prompt.chat import chat_prompt, messages_prompt, responses_prompt
from router.proxy.prompt.plain import (
    completion_prompt,
    embedding_prompt,
    no_prompt,
    rerank_prompt,
    score_prompt,
    unknown_prompt,
)
from router.proxy.prompt.value import Body, PromptText

Extractor = Callable[[Body], PromptText]


class Route(msgspec.Struct, frozen=True):
    """A path that is passed on to an engine. ``name`` is its metric label."""

    name: str
    extract: Extractor
    named_events: bool = False
    """Whether its streams are of Anthropic's dialect, in which events carry their name."""
    repeatable: bool = True
    """Whether a request that an engine may have begun to serve may be sent to another one."""
    teaches: bool = False
    """Whether its prompts and answers can be learnt as tokens."""


ANTHROPIC_PATH: Final = b"/v1/messages"
ROUTES: Mapping[bytes, Route] = {
    b"/v1/chat/completions": Route("chat", chat_prompt, teaches=True),
    b"/v1/completions": Route("completions", completion_prompt, teaches=True),
    b"/v1/embeddings": Route("embeddings", embedding_prompt),
    b"/v1/responses": Route("responses", responses_prompt),
    ANTHROPIC_PATH: Route("messages", messages_prompt, named_events=True),
    b"/v1/messages/count_tokens": Route("count_tokens", no_prompt),
    b"/v1/rerank": Route("rerank", rerank_prompt),
    b"/v2/rerank": Route("rerank", rerank_prompt),
    b"/rerank": Route("rerank", rerank_prompt),
    b"/v1/score": Route("score", score_prompt),
    b"/score": Route("score", score_prompt),
    b"/tokenize": Route("tokenize", no_prompt),
    b"/detokenize": Route("detokenize", no_prompt),
}
OTHER = Route("other", unknown_prompt, repeatable=False)
WITHOUT_BODY = Route("other", no_prompt, repeatable=False)
READING = Route("other", no_prompt)
_PREFIX: Final = b"/v1/"


def route_of(method: bytes, path: bytes) -> Route | None:
    """Return how a request is passed on; None for what is not served.

    Paths with dot segments or escapes are not normalised and so never reach an engine by another name.
    """
    if method == b"POST":
        known = ROUTES.get(path)
        if known is not None:
            return known
    if not path.startswith(_PREFIX) or b"/." in path or b"//" in path or b"%" in path:
        return None
    return _BY_METHOD.get(method)


_BY_METHOD: Mapping[bytes, Route] = {
    b"GET": READING,
    b"OPTIONS": READING,
    b"POST": OTHER,
    b"PUT": WITHOUT_BODY,
    b"PATCH": OTHER,
    b"DELETE": WITHOUT_BODY,
}
"""HEAD is not passed on: its answer has a length and no body, which only the one who asked can tell."""
