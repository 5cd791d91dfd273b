"""Reading a JSON body's fields with vLLM's checks: what is refused, and in which words."""

from typing import Any

import orjson

from router.engine.errors import invalid_field, invalid_json, missing_field, not_an_object

_TRUE = (True, 1, "true", "True", "1")
_FALSE = (False, 0, "false", "False", "0")


class Fields:
    """The fields of one JSON object. Each getter raises :class:`~router.engine.errors.ApiError` on a wrong type."""

    __slots__ = ("_prefix", "_values")

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    @classmethod
    def of_body(cls, body: bytes) -> "Fields":
        """Parse a request body."""
        try:
            values = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise invalid_json(body) from None
        if not isinstance(values, dict):
            raise not_an_object(values)
        return cls(values)

    def get(self, name: str) -> Any:
        """Return a field unchecked; None when absent."""
        return self._values.get(name)

    def required(self, name: str) -> Any:
        """Return a field that must be there."""
        if name not in self._values:
            raise missing_field(self._prefix + name, len(self._values))
        return self._values[name]

    def integer(self, name: str) -> int | None:
        """Return an integer (also written as a string or an integral float), or None when absent or null."""
        value = self._values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
            return int(value)
        reason = ", unable to parse string as an integer" if isinstance(value, str) else ""
        kind = "int_parsing" if isinstance(value, str) else "int_type"
        raise invalid_field(self._prefix + name, kind, f"Input should be a valid integer{reason}", value)

    def number(self, name: str) -> float | None:
        """Return a number, or None when absent or null."""
        value = self._values.get(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            raise invalid_field(self._prefix + name, "float_parsing", "Input should be a valid number", value) from None

    def flag(self, name: str) -> bool:
        """Return a boolean; absent or null is false."""
        value = self._values.get(name)
        if value is None or value in _FALSE:
            return False
        if value in _TRUE:
            return True
        raise invalid_field(self._prefix + name, "bool_parsing", "Input should be a valid boolean", value)

    def text(self, name: str) -> str | None:
        """Return a string, or None when absent or null."""
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise invalid_field(self._prefix + name, "string_type", "Input should be a valid string", value)

    def object(self, name: str) -> "Fields | None":
        """Return a nested object, or None when absent or null."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            return Fields(value, f"{self._prefix}{name}.")
        raise invalid_field(self._prefix + name, "dict_type", "Input should be a valid dictionary", value)
