"""`pointsman doctor`: say what is wrong with this installation, in words, and how to mend it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.ops.diagnosis import findings


class Command(BaseCommand):
    """A check-up."""

    help = "Check settings, databases, migrations, broker, instances and router workers."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: .data)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and end with status 1 when something is wrong."""
        found = list(findings())
        for finding in found:
            mark = self.style.SUCCESS("ok  ") if finding.ok else self.style.ERROR("bad ")
            self.stdout.write(f"{mark} {finding.subject}: {finding.text}")
        bad = sum(not finding.ok for finding in found)
        if bad:
            raise CommandError(f"{bad} of {len(found)} checks found something wrong")
