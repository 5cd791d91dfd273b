"""Who a request is from: API keys of ours, told by their digests. Nothing here keeps or shows a key."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from router.config import KEY_MARK, ConfigDocument, KeyConfig
from router.proxy.errors import Unauthorized
from router.proxy.wire.grammar import Fields

_MARK: Final = KEY_MARK.encode()
_BEARER: Final = b"bearer "


class Caller(msgspec.Struct, frozen=True):
    """Who asks. ``tenant`` is None for a caller without a key of ours."""

    tenant: str | None

    @property
    def has_our_key(self) -> bool:
        """Whether the credentials are ours, and so must not travel to an engine."""
        return self.tenant is not None


ANONYMOUS: Final = Caller(None)


class Access:
    """The keys of one configuration."""

    def __init__(self, keys: Mapping[str, KeyConfig], require_key: bool) -> None:
        self._keys = keys
        self._require_key = require_key

    def identify(self, fields: Fields, unix_s: float) -> Caller:
        """Return who sent a request with these header fields.

        :raises Unauthorized: for a key that looks like ours and is none (any more), or where one is required.
        """
        given = _key_in(fields)
        if given is None or (not self._keys and not given.startswith(_MARK)):
            if self._require_key:
                raise Unauthorized("no API key was sent", code="missing_api_key")
            return ANONYMOUS
        key = self._keys.get(sha256(given).hexdigest())
        if key is not None and (key.expires_unix_s is None or unix_s < key.expires_unix_s):
            return Caller(key.tenant)
        if key is not None or given.startswith(_MARK) or self._require_key:
            raise Unauthorized("the API key is not valid (any more)", code="invalid_api_key")
        return ANONYMOUS


def access_of(document: ConfigDocument) -> Access:
    """Build the access of a valid document."""
    return Access({key.digest: key for key in document.keys}, document.require_key)


def _key_in(fields: Fields) -> bytes | None:
    authorization = fields.get(b"authorization")
    if authorization is not None and authorization[:7].lower() == _BEARER:
        return authorization[7:].strip()
    return fields.get(b"x-api-key")
