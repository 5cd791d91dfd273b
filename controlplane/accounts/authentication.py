"""Bearer tokens: for REST framework's views, and for plain asynchronous ones."""

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import Actor
from controlplane.accounts.models import ApiToken, User
from controlplane.accounts.services.tokens import check_token

_KEYWORD = "bearer"
CHALLENGE = 'Bearer realm="pointsman"'


def bearer_token(header: str) -> ApiToken | None:
    """Return the token of an ``Authorization`` header; None when it carries no bearer token.

    :raises AuthenticationFailed: when it carries one that is unknown, expired or revoked.
    """
    keyword, _, text = header.partition(" ")
    if keyword.lower() != _KEYWORD:
        return None
    token = check_token(text.strip())
    if token is None:
        error = AuthenticationFailed("The token is unknown, expired or revoked.")
        error.auth_header = CHALLENGE  # type: ignore[attr-defined]
        raise error
    return token


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer TOKEN``."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, ApiToken] | None:
        """Return the token behind a request, or None when it carries none."""
        token = bearer_token(request.headers.get("Authorization", ""))
        return None if token is None else (AnonymousUser(), token)

    def authenticate_header(self, request: Request) -> str:
        """Say how to authenticate."""
        return CHALLENGE


def actor_of(user: object, token: object) -> Actor | None:
    """Return who is behind a request; None when it is nobody."""
    if isinstance(token, ApiToken):
        return Actor(f"token {token.name}", token.created_by_id, str(token.pk), token.scope_set)
    if isinstance(user, User) and user.is_active:
        return Actor(user.username, user.pk, None, user.scopes)
    return None


def scopes_of(user: object, token: object) -> frozenset[Scope]:
    """Return what the caller of a request may do."""
    actor = actor_of(user, token)
    return frozenset() if actor is None else actor.scopes
