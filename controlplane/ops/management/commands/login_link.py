"""`pointsman login-link`: print a link that signs somebody in once."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.accounts.access import Role
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import User
from controlplane.accounts.services.login_links import create_login_link, link_address
from controlplane.accounts.services.users import create_user, ensure_admin
from controlplane.errors import ControlPlaneError


class Command(BaseCommand):
    """One-time sign-in, from the command line."""

    help = "Print a link that signs somebody in once; a name that nobody has makes a new person."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("username", nargs="?", help="whom (default: the first administrator)")
        parser.add_argument("--role", choices=[role.value for role in Role], help="role of a new person")
        parser.add_argument("--hours", type=float, default=12.0, help="how long it can be used (default: %(default)s)")
        parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: .data)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the link."""
        try:
            user = self._user(options["username"], options["role"])
        except ControlPlaneError as error:
            raise CommandError(str(error)) from error
        secret = create_login_link(actor=SYSTEM, user=user, life=timedelta(hours=options["hours"]))
        self.stdout.write(link_address(secret))

    def _user(self, username: str | None, role: str | None) -> User:
        if username is None:
            if role is not None:
                raise CommandError("--role is for a new person: give a name as well.")
            return ensure_admin(actor=SYSTEM)
        known = User.objects.filter(username=username).first()
        if known is not None:
            if role not in (None, known.role):
                raise CommandError(f"{username} is {known.role} already: roles are changed on the settings page.")
            return known
        if role is None:
            raise CommandError(f"There is no user {username}; give --role to make one.")
        return create_user(actor=SYSTEM, username=username, role=Role(role))
