"""What msgspec says of a value that cannot be, in the words of forms: "It must be a number, not text."."""

import re

import msgspec

_PLACE = re.compile(r"(.*?)(?: - at `\$\.?([^`]*)`)?")
_EXPECTED = re.compile(r"Expected `([^`]+)`( of length)?(?: (>=|<=|>|<) (\S+))?(?:, got `([^`]+)`)?")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


def in_plain_words(error: msgspec.ValidationError) -> str:
    """Return a sentence, begun by the place within the value; what is not known here stays as it was said."""
    placed = _PLACE.fullmatch(str(error))
    said, place = placed.groups() if placed is not None else (str(error), None)
    text = _expected(said) or _field(said) or said
    return f"{place}: {text}" if place else text


def _expected(said: str) -> str | None:
    found = _EXPECTED.fullmatch(said)
    if found is None:
        return None
    wanted, length, bound, limit, got = found.groups()
    text = f"It must be {_kinds(wanted)}{' with a length' if length else ''}"
    if bound:
        text += f" {_BOUNDS[bound]} {limit.removesuffix('.0')}"
    return f"{text}, not {_kinds(got)}." if got else f"{text}."


def _field(said: str) -> str | None:
    found = _FIELD.fullmatch(said)
    if found is None:
        return None
    return f"The field {found[2]} is missing." if found[1].startswith("missing") else f"There is no field {found[2]}."


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))
