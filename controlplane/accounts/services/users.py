"""People: made, given a role, closed."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from controlplane.accounts.access import Role
from controlplane.accounts.actor import Actor
from controlplane.accounts.models import User
from controlplane.accounts.services.audit import record
from controlplane.errors import InUse, Invalid, NameTaken, NotFound

_ADMINISTERS = {"role": Role.ADMIN.value, "is_active": True}


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


@transaction.atomic
def change_user(*, actor: Actor, username: str, role: Role | None = None, is_active: bool | None = None) -> User:
    """Give a person another role, close the account, or open it again; links that were not used end with a closing.

    :raises NotFound: when there is nobody of that name.
    :raises InUse: when nobody would be left who may administer.
    """
    administrators = User.objects.select_for_update().filter(role=Role.ADMIN, is_active=True).order_by("pk")
    held = set(administrators.values_list("pk", flat=True))  # all of them: two who close each other wait for each other
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is nobody named {username}.")
    before = _describe(user)
    user.role = user.role if role is None else role.value
    user.is_active = user.is_active if is_active is None else is_active
    after = _describe(user)
    if after == before:
        return user
    if before == _ADMINISTERS and held == {user.pk}:
        raise InUse(f"{username} is the last administrator: make another one first.")
    user.save(update_fields=["role", "is_active"])
    if not user.is_active:
        user.login_links.filter(used_at=None).delete()
    record(actor=actor, action="user.change", target=("user", user.pk, username), before=before, after=after)
    return user


def ensure_admin(*, actor: Actor, username: str = "admin") -> User:
    """Return the first active administrator, made without a password when there is none."""
    known = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    return known or create_user(actor=actor, username=username, role=Role.ADMIN)


def _describe(user: User) -> dict[str, object]:
    return {"role": str(user.role), "is_active": user.is_active}
