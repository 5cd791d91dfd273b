"""Message content as text: strings, lists of parts, and media by their digest."""

from collections.abc import Iterable
from typing import Any

import orjson
from xxhash import xxh3_128_hexdigest

MEDIA_TOKENS = 576
"""Tokens assumed for one image or clip: what a 336-pixel image costs in the usual encoders. An estimate."""
_DIGEST_CHARS = 32
_REPEATS = MEDIA_TOKENS * 4 // _DIGEST_CHARS
MOST_PARTS = 10_000
"""Behind as many parts of a prompt media count by their digest alone: else a small body makes gigabytes of text."""
_TOO_DEEP = b"\0nested too deep"
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


def add_content(parts: list[str], content: Any) -> None:
    """Append what ``content`` (a string, a list of parts, or anything else) contributes to a prompt."""
    if isinstance(content, str):
        parts.append(content)
    elif isinstance(content, list):
        for part in content:
            _add_part(parts, part)
    elif content is not None:
        parts.append(canonical(content))


def add_fields(parts: list[str], body: Any, names: Iterable[str]) -> None:
    """Append the named members of ``body`` that are there: tools, template arguments and the like."""
    for name in names:
        value = body.get(name)
        if value:
            parts.append(f"\0{name}\1")
            parts.append(value if isinstance(value, str) else canonical(value))


def canonical(value: Any) -> str:
    """Return one text for equal JSON values; all that are nested more than 254 deep share one."""
    return _encoded(value).decode()


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return _TOO_DEEP


def _add_part(parts: list[str], part: Any) -> None:
    if isinstance(part, str):
        parts.append(part)
        return
    if isinstance(part, dict) and isinstance(text := part.get("text"), str) and part.get("type") in _TEXT_TYPES:
        parts.append(text)
        return
    encoded = _encoded(part)
    if len(encoded) < MEDIA_TOKENS and not is_media(part):
        parts.append(encoded.decode())
    else:
        parts.append(xxh3_128_hexdigest(encoded) * (_REPEATS if len(parts) < MOST_PARTS else 1))


def is_media(part: Any) -> bool:
    """Tell whether a part of a message is an image, a sound, a film or a file."""
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and any(word in kind for word in ("image", "audio", "video", "file"))
