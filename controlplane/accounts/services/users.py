"""People: made, given a role, closed."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from controlplane.accounts.access import Role
from controlplane.accounts.actor import Actor
from controlplane.accounts.models import User
from controlplane.accounts.services.audit import record
from controlplane.errors import Invalid, NameTaken


@transaction.atomic
def create_user(*, actor: Actor, username: str, role: Role, password: str | None = None) -> User:
    """Make a person; without a password they can only sign in by a one-time link.

    :raises Invalid: for a user name or a password that is refused.
    :raises NameTaken: when somebody has the name.
    """
    user = User(username=username, role=role)
    try:
        user.clean_fields(exclude=["password"])
        if password is not None:
            validate_password(password, user)
    except ValidationError as error:
        faults = getattr(error, "error_dict", None)
        raise Invalid(error.message_dict if faults else {"password": error.messages}) from error
    try:
        with transaction.atomic():
            user = User.objects.create_user(username, role, password)
    except IntegrityError as error:
        raise NameTaken(f"There is already a user named {username}.") from error
    record(actor=actor, action="user.create", target=("user", user.pk, username), after={"role": role.value})
    return user


def ensure_admin(*, actor: Actor, username: str = "admin") -> User:
    """Return the first active administrator, made without a password when there is none."""
    known = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    return known or create_user(actor=actor, username=username, role=Role.ADMIN)
