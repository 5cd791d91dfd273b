"""JSON inside a page."""

from typing import Any

import msgspec
from django.utils.safestring import SafeString, mark_safe


def embeddable(document: str) -> SafeString:
    """Return JSON that may stand in a script element of type ``application/json``.

    Inside a script element only "<" could end it; JSON has it in strings alone, where the escape means the same.
    """
    return mark_safe(document.replace("<", "\\u003c"))  # noqa: S308


def embeddable_json(value: Any) -> SafeString:
    """Return a value as JSON that may stand in such an element."""
    return embeddable(msgspec.json.encode(value).decode())
