"""Faults of values are told in the words of forms."""

from typing import Annotated, Any

import msgspec
import pytest

from controlplane.plain_words import in_plain_words


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """Something with a place of its own."""

    name: str
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """One of each kind."""

    a: float | None = None
    b: int = 0
    some: Annotated[list[int], msgspec.Meta(min_length=1)] = []
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": "x"}, "a: It must be a number or nothing, not text."),
        ({"b": 1.5}, "b: It must be a whole number, not a number."),
        ({"b": None}, "b: It must be a whole number, not nothing."),
        ({"some": []}, "some: It must be a list with a length of at least 1."),
        ({"some": [1, "x"]}, "some[1]: It must be a whole number, not text."),
        ({"inner": {}}, "inner: The field name is missing."),
        ({"inner": {"name": "n", "share": 2}}, "inner.share: It must be a number of at most 1."),
        ({"inner": {"name": "n", "more": 1}}, "inner: There is no field more."),
        ([], "It must be an object, not a list."),
    ],
)
def test_a_fault_is_a_sentence_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Outer)
    assert in_plain_words(caught.value) == said


def test_what_is_not_known_stays_as_it_was_said() -> None:
    assert in_plain_words(msgspec.ValidationError("Invalid enum value 'x' - at `$.b`")) == "b: Invalid enum value 'x'"
    assert in_plain_words(msgspec.ValidationError("something else")) == "something else"
