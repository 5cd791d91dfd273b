"""One-time sign-in links: made, and used once."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.accounts.actor import Actor
from controlplane.accounts.models import LoginLink, User
from controlplane.accounts.secret_text import digest, new_secret
from controlplane.accounts.services.audit import record
from controlplane.public_address import public_address

DEFAULT_LIFE = timedelta(hours=12)


@transaction.atomic
def create_login_link(*, actor: Actor, user: User, life: timedelta = DEFAULT_LIFE) -> str:
    """Return the secret of a new link, which cannot be seen again."""
    secret = new_secret()
    LoginLink.objects.create(user=user, digest=digest(secret), expires_at=timezone.now() + life)
    record(actor=actor, action="login_link.create", target=("user", user.pk, user.username))
    return secret


def link_address(secret: str, reached_at: str = "") -> str:
    """Return where a link leads; ``reached_at`` is the address that its maker was reached at, where there is one."""
    return f"{public_address(reached_at)}/login/once/{secret}/"


@transaction.atomic
def use_login_link(secret: str) -> User | None:
    """Return whom a link signs in, and use it up; None when it is unknown, used, expired or of a closed account."""
    now = timezone.now()
    kept = digest(secret)
    # One plain UPDATE: with a join it becomes a subquery, which two callers can both pass in PostgreSQL.
    claimed = LoginLink.objects.filter(digest=kept, used_at=None, expires_at__gt=now).update(used_at=now)
    user = LoginLink.objects.select_related("user").get(digest=kept).user if claimed else None
    if user is None or not user.is_active:
        return None
    record(actor=Actor(user.username, user.pk), action="user.sign_in_by_link", target=("user", user.pk, user.username))
    return user
