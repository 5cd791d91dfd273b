"""`pointsman prune`: delete rows that nobody needs any more."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from controlplane.ops.retention import prune


class Command(BaseCommand):
    """Retention, by hand; Celery does the same every day."""

    help = "Delete removed instances, used links, and audit entries beyond their retention."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: .data)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune, and say how much."""
        for what, count in prune().items():
            self.stdout.write(f"{count} {what}")
