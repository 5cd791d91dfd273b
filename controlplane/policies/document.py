"""A policy as a YAML document, to keep in version control and to bring in again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from controlplane.errors import Invalid

KIND = "pointsman/policy/v1"
MOST_BYTES = 64 * 1024
_FIELDS = frozenset({"kind", "name", "revision", "description", "content"})


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """What a document says; ``revision`` tells where it was exported, and is not brought in."""

    name: str
    description: str
    content: Mapping[str, Any]


def dump(*, name: str, revision: int, description: str, content: Mapping[str, Any]) -> str:
    """Return a document; equal policies give equal texts."""
    whole = {"kind": KIND, "name": name, "revision": revision, "description": description, "content": dict(content)}
    text: str = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    return text


def load(text: bytes) -> PolicyDocument:
    """Read a document.

    :raises Invalid: when it is none of ours.
    """
    if len(text) > MOST_BYTES:
        raise Invalid({"body": [f"It has {len(text)} bytes, but may have {MOST_BYTES}."]})
    try:
        found = yaml.load(text, Loader=_PlainLoader)  # noqa: S506  (a SafeLoader, and stricter)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Invalid({"body": [f"It is not YAML of the plain kind: {error}"]}) from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise Invalid({"kind": [f"It must be {KIND}."]})
    faults = {str(name): ["There is no such field."] for name in found if name not in _FIELDS}
    for name, kind in (("name", str), ("description", str), ("content", dict)):
        if not isinstance(found.get(name, kind()), kind):
            faults[name] = [f"It must be a {'mapping' if kind is dict else 'text'}."]
    if faults:
        raise Invalid(faults)
    return PolicyDocument(found.get("name", ""), found.get("description", ""), _plain(found.get("content", {})))


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: they can make a small text enormous."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


def _plain(value: Any) -> Any:
    """Return JSON: mappings with texts as keys, lists, numbers, texts, true, false and null.

    :raises Invalid: for anything else, such as a date.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Invalid({"content": [f"{value!r} is neither number, text, list nor mapping."]})
