"""Secrets that are shown once and kept as a hash.

They carry 256 random bits, so one SHA-256 is enough: there is nothing to guess, and checking one costs microseconds.
"""

import hashlib
import secrets


def new_secret() -> str:
    """Return 43 characters that nobody can guess."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return what is kept of a secret, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, kept: str) -> bool:
    """Compare in constant time."""
    return secrets.compare_digest(digest(secret), kept)
