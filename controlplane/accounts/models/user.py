"""People."""

from typing import ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models

from controlplane.accounts.access import ROLE_SCOPES, Role, Scope


class UserManager(BaseUserManager["User"]):
    """Makes people; without a password they can only sign in by a one-time link."""

    def create_user(self, username: str, role: Role, password: str | None = None) -> "User":
        """Make a person with a role."""
        user = self.model(username=self.model.normalize_username(username), role=role)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person with one role."""

    username = models.CharField(max_length=150, unique=True, validators=[UnicodeUsernameValidator()])
    full_name = models.CharField(max_length=200, blank=True)
    email = models.EmailField(blank=True)
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role], default=Role.VIEWER)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

    class Meta:
        ordering = ["username"]

    def __str__(self) -> str:
        return self.username

    @property
    def scopes(self) -> frozenset[Scope]:
        """What this person may do."""
        return ROLE_SCOPES[Role(self.role)]
