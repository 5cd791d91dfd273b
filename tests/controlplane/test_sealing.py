"""Secrets at rest can be opened by this installation alone."""

import pytest

from controlplane.sealing import CannotOpen, derived, seal, unseal


def test_what_is_sealed_can_be_opened_here() -> None:
    sealed = seal(b"secret")
    assert b"secret" not in sealed
    assert unseal(sealed) == b"secret"


def test_another_key_opens_nothing(settings: object) -> None:
    sealed = seal(b"secret")
    settings.SECRET_KEY = "another key of this installation!!"  # type: ignore[attr-defined]
    with pytest.raises(CannotOpen):
        unseal(sealed)


def test_derived_bytes_are_steady_and_depend_on_their_purpose() -> None:
    assert derived("a", 16) == derived("a", 16)
    assert derived("a", 16) != derived("b", 16)
    assert len(derived("a", 16)) == 16
