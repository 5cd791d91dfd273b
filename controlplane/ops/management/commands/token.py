"""`pointsman token create`: make an API token; only the token itself goes to standard output."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tokens import create_token
from controlplane.errors import Invalid


class Command(BaseCommand):
    """API tokens, from the command line."""

    help = "Make an API token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="make a token and print it alone on standard output")
        create.add_argument("--name", required=True, help="what it is for")
        create.add_argument("--scopes", required=True, help=f"comma list of: {', '.join(s.value for s in Scope)}")
        create.add_argument("--days", type=int, help="days until it expires (default: never)")
        create.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: .data)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the token."""
        days: int | None = options["days"]
        expires_at = None if days is None else timezone.now() + timedelta(days=days)
        scopes = [scope.strip() for scope in options["scopes"].split(",")]
        try:
            _, text = create_token(actor=SYSTEM, name=options["name"], scopes=scopes, expires_at=expires_at)
        except Invalid as error:
            raise CommandError(str(error)) from error
        self.stdout.write(text)
