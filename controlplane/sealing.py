"""Secrets at rest: sealed with a key derived from the signing key, so that a copy of the database tells nothing.

Who changes the signing key must enter these secrets anew; what cannot be opened is reported, never guessed.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"pointsman secrets at rest"


class CannotOpen(Exception):
    """A secret was sealed with another signing key, or is damaged."""


def seal(secret: bytes) -> bytes:
    """Return a secret in a form that only this installation can open."""
    return _box(settings.SECRET_KEY).encrypt(secret)


def unseal(sealed: bytes) -> bytes:
    """Return what was sealed.

    :raises CannotOpen: when it was sealed with another key.
    """
    try:
        return _box(settings.SECRET_KEY).decrypt(sealed)
    except InvalidToken as error:
        raise CannotOpen("it was sealed with another POINTSMAN_SECRET_KEY") from error


def derived(purpose: str, length: int) -> bytes:
    """Return bytes that are always the same for a purpose and this installation, and known to nobody else."""
    return derived_from(settings.SECRET_KEY, purpose, length)


def derived_from(key: str, purpose: str, length: int) -> bytes:
    """Return the same for a signing key (settings that are still being read need it)."""
    return _derive(key, purpose.encode(), length)


@lru_cache(maxsize=4)
def _box(key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derive(key, _PURPOSE, 32)))


def _derive(key: str, purpose: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=purpose).derive(key.encode())
