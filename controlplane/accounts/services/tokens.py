"""API tokens: made, checked, revoked.

A token reads ``pm_<prefix>_<secret>``. The prefix finds the row, the hash of the whole text proves it.
"""

import secrets
import string
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.access import parse_scopes
from controlplane.accounts.actor import Actor
from controlplane.accounts.models import ApiToken
from controlplane.accounts.secret_text import digest, matches, new_secret
from controlplane.accounts.services.audit import record
from controlplane.errors import Invalid

_MARK = "pm"
_PREFIX_LENGTH = 8
_PREFIX_LETTERS = string.ascii_lowercase + string.digits
_USE_RESOLUTION = timedelta(minutes=1)
"""``last_used_at`` is written at most this often: a write for every request would cost more than the request."""


@transaction.atomic
def create_token(
    *, actor: Actor, name: str, scopes: Iterable[str], expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Make a token, and return its row and its text, which cannot be seen again.

    :raises Invalid: for a blank name, an unknown scope, or an end that has passed.
    """
    wanted = parse_scopes(scopes)
    if not name.strip():
        raise Invalid({"name": ["It must not be blank."]})
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid({"expires_at": ["It has already passed."]})
    prefix = f"{_MARK}_{''.join(secrets.choice(_PREFIX_LETTERS) for _ in range(_PREFIX_LENGTH))}"
    text = f"{prefix}_{new_secret()}"
    token = ApiToken.objects.create(
        name=name.strip(),
        prefix=prefix,
        digest=digest(text),
        scopes=sorted(wanted),
        created_by_id=actor.user_id,
        expires_at=expires_at,
    )
    record(actor=actor, action="token.create", target=("token", token.pk, token.name), after=describe(token))
    return token, text


@transaction.atomic
def revoke_token(*, actor: Actor, token: ApiToken) -> ApiToken:
    """End a token at once; revoking twice changes nothing."""
    before = describe(token)
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    token.refresh_from_db()
    if revoked:
        record(
            actor=actor,
            action="token.revoke",
            target=("token", token.pk, token.name),
            before=before,
            after=describe(token),
        )
    return token


def check_token(text: str) -> ApiToken | None:
    """Return the token with this text, if it may be used now; note that it was used."""
    prefix = text[: len(_MARK) + 1 + _PREFIX_LENGTH]
    token = ApiToken.objects.filter(prefix=prefix).first()
    now = timezone.now()
    if token is None or not matches(text, token.digest) or not token.usable_at(now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _USE_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def describe(token: ApiToken) -> dict[str, object]:
    """Return what the audit log may know about a token."""
    return {
        "name": token.name,
        "prefix": token.prefix,
        "scopes": list(token.scopes),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
        "revoked": token.revoked_at is not None,
    }
