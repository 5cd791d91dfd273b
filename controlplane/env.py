"""Reading the environment: strict parsers that refuse, never replace.

Everything that can be set is set by an environment variable; a secret ``X`` may also stand in a file that ``X_FILE``
names. A value that cannot be read stops the program with the variable's name and what was expected.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

Value = TypeVar("Value")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class InvalidSetting(Exception):
    """A variable of the environment that cannot be used; the message names it and what it should be."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One variable that was read: what is in force, and whether the environment says so or a default does.

    The value of a secret is never here.
    """

    name: str
    value: str
    is_set: bool
    is_secret: bool = False


class Environment:
    """One environment, read by typed parsers. ``readings`` has what was read, in order."""

    def __init__(self, variables: Mapping[str, str] = os.environ) -> None:
        self._variables = variables
        self.readings: dict[str, Reading] = {}

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text.

        :raises InvalidSetting: when it is not set and has no default, or is blank.
        """
        value = self._raw(name)
        if value is None and default is None:
            raise InvalidSetting(f"{name} is not set, and has no default")
        return self._read(name, str(default) if value is None else value)

    def optional(self, name: str) -> str | None:
        """Return a text, or None when it is not set.

        :raises InvalidSetting: when it is blank.
        """
        value = self._raw(name)
        self._read(name, value or "")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Return true or false.

        :raises InvalidSetting: for anything but 1/0, true/false, yes/no, on/off.
        """
        value = self._raw(name)
        if value is None or value.lower() in _TRUE | _FALSE:
            return self._read(name, default if value is None else value.lower() in _TRUE)
        raise InvalidSetting(f"{name} is {value!r}, but it must be true or false")

    def integer(self, name: str, default: int, *, minimum: int, maximum: int) -> int:
        """Return a whole number within limits.

        :raises InvalidSetting: for anything else.
        """
        value = self._raw(name)
        if value is None:
            return self._read(name, default)
        try:
            number = int(value)
        except ValueError:
            raise InvalidSetting(f"{name} is {value!r}, but it must be a whole number") from None
        if not minimum <= number <= maximum:
            raise InvalidSetting(f"{name} is {number}, but it must be from {minimum} to {maximum}")
        return self._read(name, number)

    def number(self, name: str, default: float, *, minimum: float, maximum: float) -> float:
        """Return a number within limits.

        :raises InvalidSetting: for anything else.
        """
        value = self._raw(name)
        if value is None:
            return self._read(name, default)
        try:
            number = float(value)
        except ValueError:
            raise InvalidSetting(f"{name} is {value!r}, but it must be a number") from None
        if not minimum <= number <= maximum:
            raise InvalidSetting(f"{name} is {number}, but it must be from {minimum} to {maximum}")
        return self._read(name, number)

    def items(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the comma-separated items of a list.

        :raises InvalidSetting: for an empty item.
        """
        value = self._raw(name)
        if value is None:
            return self._read(name, default)
        parts = tuple(part.strip() for part in value.split(","))
        if not all(parts):
            raise InvalidSetting(f"{name} is {value!r}: a list item is empty")
        return self._read(name, parts)

    def path(self, name: str, default: Path) -> Path:
        """Return an absolute path."""
        value = self._raw(name)
        return self._read(name, (default if value is None else Path(value).expanduser()).absolute())

    def secret(self, name: str) -> str | None:
        """Return a secret from ``name`` or from the file that ``name_FILE`` names; None when neither is set.

        :raises InvalidSetting: when both are set, or the file cannot be read or is empty.
        """
        value, file = self._raw(name), self._raw(f"{name}_FILE")
        self.readings[name] = Reading(name, "", is_set=value is not None or file is not None, is_secret=True)
        if value is not None and file is not None:
            raise InvalidSetting(f"{name} and {name}_FILE are both set; keep one")
        if file is None:
            return value
        try:
            secret = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSetting(f"{name}_FILE cannot be read: {error}") from error
        if not secret:
            raise InvalidSetting(f"{name}_FILE names an empty file")
        return secret

    def _raw(self, name: str) -> str | None:
        value = self._variables.get(name)
        if value is not None and not value.strip():
            raise InvalidSetting(f"{name} is set, but blank; unset it or give it a value")
        return None if value is None else value.strip()

    def _read(self, name: str, value: Value) -> Value:
        """Note what is in force, and return it."""
        self.readings[name] = Reading(name, _shown(value), is_set=name in self._variables)
        return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse_database_url(name: str, url: str) -> dict[str, Any]:
    """Return Django's settings of a PostgreSQL database given as ``postgres://user:password@host:port/name?option=value``.

    :raises InvalidSetting: for another scheme, or without a database name.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise InvalidSetting(f"{name} has scheme {parts.scheme!r}, but it must be postgres:// (SQLite needs no URL)")
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise InvalidSetting(f"{name} names no database: expected postgres://user:password@host:port/name")
    try:
        port = parts.port
    except ValueError:
        raise InvalidSetting(f"{name} has a port that is no number from 0 to 65535") from None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": "" if port is None else str(port),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }
