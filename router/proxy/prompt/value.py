"""What an extractor returns."""

from collections.abc import Mapping
from typing import Any

import msgspec

Body = Mapping[str, Any]
"""A JSON object as it was sent; nothing about its members may be assumed."""


class PromptText(msgspec.Struct, frozen=True, gc=False):
    """The bytes that stand for a prompt, in the order in which an engine would read them.

    The bytes of one turn of a conversation are a prefix of those of the next. ``token_ids`` is the exact number of
    tokens where the prompt came as ids (then ``text`` holds 4 bytes an id), and None where it must be estimated.
    """

    text: bytes
    token_ids: int | None = None
    several: bool = False
    """Whether they are of several prompts, one behind the other."""


NO_PROMPT = PromptText(b"")
