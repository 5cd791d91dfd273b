"""How a request is recognised as one of a workload's: by headers, tenant, model and path.

Every kind that a match names must hold; inside a kind one value is enough, except for headers, which must all hold. A
pattern is a whole value, or the beginning of one followed by ``*``. A match that names nothing matches nothing: such a
workload is only reached by name.
"""

from collections.abc import Mapping

import msgspec

_ANY = "*"


class WorkloadMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns, as the configuration carries them."""

    headers: Mapping[str, str] = {}
    """Patterns by header name, in lower case."""
    tenants: tuple[str, ...] = ()
    """Names of tenants, whole."""
    models: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it names nothing."""
        return not (self.headers or self.tenants or self.models or self.paths)


class Matcher:
    """A match made ready to be asked for every request."""

    __slots__ = ("_headers", "_match")

    def __init__(self, match: WorkloadMatch) -> None:
        self._match = match
        self._headers = tuple((name.lower().encode(), pattern) for name, pattern in match.headers.items())

    def holds(self, headers: Mapping[bytes, bytes], tenant: str | None, model: str, path: str) -> bool:
        """Return whether a request is one of the workload's; header names are in lower case."""
        match = self._match
        return (
            not match.is_empty
            and (not match.tenants or tenant in match.tenants)
            and (not match.models or _any(match.models, model))
            and (not match.paths or _any(match.paths, path))
            and all(_header_holds(headers.get(name), pattern) for name, pattern in self._headers)
        )


def match_faults(match: WorkloadMatch) -> list[str]:
    """Return what is wrong with a match, each beginning with the field."""
    faults = [f"headers: {name!r} is no header name" for name in match.headers if not _is_token(name)]
    for field in ("models", "paths", "tenants"):
        faults += [f"{field}: a pattern is empty" for pattern in getattr(match, field) if not pattern]
    faults += [f"paths: {path!r} must begin with /" for path in match.paths if path and path[0] not in "/*"]
    patterns = [*match.models, *match.paths, *match.headers.values()]
    faults += [f"{pattern!r} has a * before its end" for pattern in patterns if _ANY in pattern[:-1]]
    return faults


def _any(patterns: tuple[str, ...], value: str) -> bool:
    return any(_holds(pattern, value) for pattern in patterns)


def _holds(pattern: str, value: str) -> bool:
    return value.startswith(pattern[:-1]) if pattern.endswith(_ANY) else value == pattern


def _header_holds(value: bytes | None, pattern: str) -> bool:
    return value is not None and _holds(pattern, value.decode("utf-8", "replace"))


def _is_token(name: str) -> bool:
    return bool(name) and all(c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name)
